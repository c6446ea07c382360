#include "ridge/core/shared_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "ridge/core/crc32c.h"
#include "ridge/core/read_back.h"

namespace ridge {
namespace {

constexpr int64_t kPieceBytes = int64_t{1} << 20;

Status SystemFailure(const std::string& path, const char* what, int error) {
  return Status(ErrorCode::kUnavailable,
                fmt::format("{}: cannot {}: {}", path, what, std::strerror(error)));
}

// 0, or the system's error.
int TakeRoom(int fd, int64_t size_bytes) {
  if (size_bytes == 0 || ::fallocate(fd, 0, 0, size_bytes) == 0) return 0;
  if (errno != EOPNOTSUPP && errno != ENOSYS) return errno;
  return ::ftruncate(fd, size_bytes) == 0 ? 0 : errno;
}

}  // namespace

Status MakeFileOf(const std::string& path, int64_t size_bytes) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return SystemFailure(path, "create", errno);
  const int error = TakeRoom(fd, size_bytes);
  ::close(fd);
  return error == 0 ? Status() : SystemFailure(path, "write", error);
}

Result<SharedFile> SharedFile::Open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return SystemFailure(path, "open", errno);
  return SharedFile(path, fd);
}

SharedFile::~SharedFile() {
  if (fd_ >= 0) ::close(fd_);
}

Status SharedFile::Failure(const char* what) const { return SystemFailure(path_, what, errno); }

Status SharedFile::WriteAt(int64_t begin, std::string_view bytes) {
  if (ranges_.empty() || ranges_.back().end != begin) ranges_.push_back({begin, begin, 0});
  Range& range = ranges_.back();
  while (!bytes.empty()) {  // a piece is still in the cache when its checksum is taken
    const std::string_view piece = bytes.substr(0, kPieceBytes);
    const ssize_t written = ::pwrite(fd_, piece.data(), piece.size(), range.end);
    if (written < 0 && errno == EINTR) continue;
    if (written == 0) errno = EIO;
    if (written <= 0) return Failure("write");
    range.crc32c = Crc32c(piece.substr(0, static_cast<size_t>(written)), range.crc32c);
    range.end += written;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return Status();
}

Status SharedFile::Verify(const Range& range) const {
  const BytesRead read = ReadBack(fd_, range.begin, range.end);
  if (read.error != 0) return SystemFailure(path_, "read", read.error);
  if (read.count == range.end - range.begin && read.crc32c == range.crc32c) return Status();
  return Status(ErrorCode::kInvalidData,
                fmt::format("{}: damaged: bytes {} to {} have crc32c {:08x}, written were {:08x}",
                            path_, range.begin, range.end, read.crc32c, range.crc32c));
}

Status SharedFile::Close() {
  if (::fsync(fd_) != 0) return Failure("sync");
  for (const Range& range : ranges_) RIDGE_RETURN_IF_ERROR(Verify(range));
  return ::close(std::exchange(fd_, -1)) == 0 ? Status() : Failure("close");
}

std::optional<uint32_t> JoinRanges(std::vector<SharedFile::Range> ranges, int64_t size_bytes) {
  std::sort(ranges.begin(), ranges.end(),
            [](const auto& a, const auto& b) { return a.begin < b.begin; });
  int64_t end = 0;
  uint32_t crc = 0;
  for (const SharedFile::Range& range : ranges) {
    if (range.begin != end) return std::nullopt;
    crc = JoinCrc32c(crc, range.crc32c, range.end - range.begin);
    end = range.end;
  }
  return end == size_bytes ? std::optional(crc) : std::nullopt;
}

}  // namespace ridge
