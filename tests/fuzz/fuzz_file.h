// FuzzFile: the fuzzer's bytes as a file without a disk, for readers that take a path.
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "ridge/core/status.h"

namespace ridge {

class FuzzFile {
 public:
  FuzzFile(const uint8_t* data, size_t size) : fd_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    RIDGE_CHECK(fd_ >= 0, "memfd_create");
    RIDGE_CHECK(::write(fd_, data, size) == static_cast<ssize_t>(size), "write");
  }
  FuzzFile(const FuzzFile&) = delete;
  FuzzFile& operator=(const FuzzFile&) = delete;
  ~FuzzFile() { ::close(fd_); }
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

}  // namespace ridge
