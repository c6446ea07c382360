// FileStamp: what tells a file from another one that took its place.
#pragma once
#include <sys/stat.h>

#include <cstdint>

namespace ridge {

struct FileStamp {
  int64_t bytes = 0;
  int64_t changed_ns = 0;
  uint64_t inode = 0;

  bool operator==(const FileStamp&) const = default;
};

inline FileStamp StampOf(const struct stat& info) {
  constexpr int64_t kNanoseconds = 1'000'000'000;
  return {info.st_size, info.st_mtim.tv_sec * kNanoseconds + info.st_mtim.tv_nsec, info.st_ino};
}

}  // namespace ridge
