// FileLock: one process at a time, on all machines that share the file system.
//
// The system lets go of it when the process ends, however that happens, so a killed one leaves
// nothing to clean up.  The file stays; it holds the number of the process that had the lock last,
// and its machine.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "ridge/core/status.h"

namespace ridge {

struct LockHolder {
  int64_t process = 0;  // 0: not known
  std::string machine;  // "": this one, or not known
};
// "process 77", "process 77 on node3", "another process".
std::string HolderText(const LockHolder& holder);

class FileLock {
 public:
  // Makes the file when it is not there.  nullopt when another process has the lock: then `holder`
  // says which.  A file system without locks locks nothing.
  // Fails with kUnavailable when the file can't be made.
  static Result<std::optional<FileLock>> Take(const std::string& path, LockHolder& holder);

  // The number of the process that has the lock, 0 when that is not known; nullopt when none has
  // it. Makes no file.
  static std::optional<int64_t> Holder(const std::string& path);

  FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileLock& operator=(FileLock&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace ridge
