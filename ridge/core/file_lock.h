// FileLock: one process at a time.
//
// The system lets go of it when the process ends, however that happens, so a killed one leaves
// nothing to clean up.  The file stays; it holds the number of the process that had the lock last.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "ridge/core/status.h"

namespace ridge {

class FileLock {
 public:
  // Makes the file when it is not there.  nullopt when another process has the lock: `holder` is
  // its number, 0 when that is not known.  A file system without locks locks nothing.
  // Fails with kUnavailable when the file can't be made.
  static Result<std::optional<FileLock>> Take(const std::string& path, int64_t& holder);

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
