#include "ridge/core/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace ridge {
namespace {

// Closes on every way out.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  bool Close() { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

Status Failure(ErrorCode code, const std::string& path, const char* what) {
  return Status(code, fmt::format("{}: cannot {}: {}", path, what, std::strerror(errno)));
}

Status WriteAll(const Descriptor& file, const std::string& path, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(file.get(), content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Failure(ErrorCode::kUnavailable, path, "write");
    content.remove_prefix(static_cast<size_t>(written));
  }
  return Status();
}

Status WriteNewFile(const std::string& path, std::string_view content) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (file.get() < 0) return Failure(ErrorCode::kUnavailable, path, "create");
  RIDGE_RETURN_IF_ERROR(WriteAll(file, path, content));
  if (::fsync(file.get()) != 0) return Failure(ErrorCode::kUnavailable, path, "sync");
  if (!file.Close()) return Failure(ErrorCode::kUnavailable, path, "close");
  return Status();
}

}  // namespace

Result<std::string> ReadFile(const std::string& path, int64_t max_bytes) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return Failure(ErrorCode::kInvalidData, path, "open");
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return Failure(ErrorCode::kInvalidData, path, "stat");
  if (S_ISDIR(info.st_mode))
    return Status(ErrorCode::kInvalidData, path + ": is a folder, not a file");
  std::string content;
  if (info.st_size <= max_bytes) content.reserve(static_cast<size_t>(info.st_size));
  char buffer[1 << 16];
  while (true) {
    const ssize_t count = ::read(file.get(), buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Failure(ErrorCode::kInvalidData, path, "read");
    if (count == 0) return content;
    if (static_cast<int64_t>(content.size()) + count > max_bytes) {
      return Status(ErrorCode::kInvalidData,
                    fmt::format("{}: is larger than the {} bytes allowed here", path, max_bytes));
    }
    content.append(buffer, static_cast<size_t>(count));
  }
}

Status WriteFileAtomically(const std::string& path, std::string_view content) {
  const std::string temporary = fmt::format("{}.tmp-{}", path, ::getpid());
  Status status = WriteNewFile(temporary, content);
  if (status.ok() && ::rename(temporary.c_str(), path.c_str()) != 0)
    status = Failure(ErrorCode::kUnavailable, path, "rename to");
  if (!status.ok()) {
    ::unlink(temporary.c_str());
    return status;
  }
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return SyncPath(folder.empty() ? "." : folder);
}

Status SyncPath(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return Failure(ErrorCode::kUnavailable, path, "open");
  if (::fsync(file.get()) != 0 && errno != EINVAL)  // EINVAL: a file system without it
    return Failure(ErrorCode::kUnavailable, path, "sync");
  return Status();
}

Status MakeFolders(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (!error) return Status();
  return Status(ErrorCode::kUnavailable,
                fmt::format("{}: cannot create the folder: {}", path, error.message()));
}

std::string CacheFolder() {
  const char* xdg = std::getenv("XDG_CACHE_HOME");
  if (xdg != nullptr && xdg[0] == '/') return std::string(xdg) + "/ridge";
  const char* home = std::getenv("HOME");
  return std::string(home != nullptr ? home : "/tmp") + "/.cache/ridge";
}

}  // namespace ridge
