// SharedFile: a file that several processes write at the same time, each its own bytes of it.
//
//   RIDGE_RETURN_IF_ERROR(MakeFileOf(path, size));  // one of them; then all:
//   RIDGE_ASSIGN_OR_RETURN(auto file, SharedFile::Open(path));
//   for (...) RIDGE_RETURN_IF_ERROR(file.WriteAt(place, bytes));
//   RIDGE_RETURN_IF_ERROR(file.Close());
//
// Errors are kUnavailable, with the path and the system's reason.  Not thread-safe.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ridge/core/status.h"

namespace ridge {

// Creates or replaces a file of so many bytes and takes their room on the disk where the file
// system can, so that a full disk is known before anybody writes.
Status MakeFileOf(const std::string& path, int64_t size_bytes);

class SharedFile {
 public:
  struct Range {
    int64_t begin = 0, end = 0;  // bytes of the file
    uint32_t crc32c = 0;
  };

  // The file must be there.
  static Result<SharedFile> Open(const std::string& path);
  SharedFile(SharedFile&& other) noexcept
      : path_(std::move(other.path_)),
        fd_(std::exchange(other.fd_, -1)),
        ranges_(std::move(other.ranges_)) {}
  SharedFile& operator=(SharedFile&&) = delete;
  ~SharedFile();

  Status WriteAt(int64_t begin, std::string_view bytes);
  // Syncs, reads what was written back from the disk where that can be asked for, and compares
  // checksums; fails with kInvalidData where they differ.  Closes.
  Status Close();

  // What was written here; what one call wrote behind another is one range.
  const std::vector<Range>& ranges() const { return ranges_; }

 private:
  SharedFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  Status Failure(const char* what) const;
  Status Verify(const Range& range) const;

  std::string path_;
  int fd_;
  std::vector<Range> ranges_;
};

// The checksum of the whole file, of what all processes wrote; nullopt unless the ranges are
// [0, size_bytes) without a hole and without a byte twice.
std::optional<uint32_t> JoinRanges(std::vector<SharedFile::Range> ranges, int64_t size_bytes);

}  // namespace ridge
