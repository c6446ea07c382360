#include "ridge/core/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "ridge/core/files.h"

namespace ridge {
namespace {

int OpenFlags(OutputFile::Mode mode) {
  switch (mode) {
    case OutputFile::Mode::kReplace:
      return O_TRUNC;
    case OutputFile::Mode::kKeep:
      return 0;
    case OutputFile::Mode::kNew:
      return O_EXCL;
  }
  return 0;
}

}  // namespace

Result<OutputFile> OutputFile::Open(std::string path, Mode mode) {
  RIDGE_ASSIGN_OR_RETURN(const OutputTarget target, FindOutputTarget(path));
  const bool is_open = mode == Mode::kReplace && target.descriptor >= 0;
  const int fd = is_open
                     ? ::fcntl(target.descriptor, F_DUPFD_CLOEXEC, 0)
                     : ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | OpenFlags(mode), 0644);
  OutputFile file(std::move(path), fd);
  if (fd < 0) return file.Failure("create");
  const off_t end = ::lseek(fd, 0, SEEK_END);
  file.size_bytes_ = end > 0 ? static_cast<int64_t>(end) : 0;  // a pipe has no place
  return file;
}

OutputFile::~OutputFile() {
  if (fd_ >= 0) ::close(fd_);
}

void OutputFile::Swap(OutputFile& other) {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(size_bytes_, other.size_bytes_);
}

Status OutputFile::Failure(const char* what) const {
  return Status(ErrorCode::kUnavailable,
                fmt::format("{}: cannot {}: {}", path_, what, std::strerror(errno)));
}

Status OutputFile::Append(std::string_view bytes) {
  const int64_t size_before = size_bytes_;
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      if (written == 0) errno = EIO;
      const Status failure = Failure("write");
      if (size_bytes_ > size_before) (void)CutTo(size_before).ok();  // the first error counts
      return failure;
    }
    bytes.remove_prefix(static_cast<size_t>(written));
    size_bytes_ += written;
  }
  return Status();
}

Status OutputFile::CutTo(int64_t size_bytes) {
  if (::ftruncate(fd_, size_bytes) != 0) return Failure("shorten");
  if (::lseek(fd_, size_bytes, SEEK_SET) < 0) return Failure("seek in");
  size_bytes_ = size_bytes;
  return Status();
}

Status OutputFile::Sync() {
  if (::fsync(fd_) == 0 || errno == EINVAL || errno == EROFS) return Status();  // pipes, devices
  return Failure("sync");
}

Status OutputFile::Close() {
  if (fd_ < 0) return Status();
  const Status synced = Sync();
  const bool closed = ::close(std::exchange(fd_, -1)) == 0;
  if (!synced.ok() || closed) return synced;
  return Failure("close");
}

}  // namespace ridge
