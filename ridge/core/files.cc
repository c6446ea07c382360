#include "ridge/core/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
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

// O_EXCL: a link that waits under the temporary name is not followed.
Status WriteNewFile(const std::string& path, std::string_view content, const OutputTarget& target) {
  ::unlink(path.c_str());
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (file.get() < 0) return Failure(ErrorCode::kUnavailable, path, "create");
  TakePermissions(target, path);
  RIDGE_RETURN_IF_ERROR(WriteAll(file, path, content));
  if (::fsync(file.get()) != 0) return Failure(ErrorCode::kUnavailable, path, "sync");
  if (!file.Close()) return Failure(ErrorCode::kUnavailable, path, "close");
  return Status();
}

std::string ShownName(const OutputTarget& target) {
  return target.descriptor == STDOUT_FILENO ? "standard output"
         : target.descriptor >= 0           ? fmt::format("descriptor {}", target.descriptor)
                                            : target.path;
}

Result<int> OpenInPlace(const OutputTarget& target) {
  if (target.descriptor == STDOUT_FILENO) std::fflush(stdout);  // what was printed comes first
  const int fd = target.descriptor >= 0
                     ? ::fcntl(target.descriptor, F_DUPFD_CLOEXEC, 0)
                     : ::open(target.path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY);
  if (fd < 0) return Failure(ErrorCode::kUnavailable, ShownName(target), "open");
  return fd;
}

Status WriteInPlace(const OutputTarget& target, std::string_view content) {
  RIDGE_ASSIGN_OR_RETURN(const int fd, OpenInPlace(target));
  Descriptor file(fd);
  RIDGE_RETURN_IF_ERROR(WriteAll(file, ShownName(target), content));
  return file.Close() ? Status() : Failure(ErrorCode::kUnavailable, ShownName(target), "close");
}

OutputTarget OpenDescriptor(int descriptor) {
  OutputTarget target;
  target.descriptor = descriptor;
  target.in_place = true;
  return target;
}

// 1 of "/proc/self/fd/1", however that folder is called; -1 of other names.
int OwnDescriptor(const std::filesystem::path& path) {
  std::error_code error;
  const auto folder = std::filesystem::canonical(
      path.has_parent_path() ? path.parent_path() : std::filesystem::path("."), error);
  if (error || folder.string() != fmt::format("/proc/{}/fd", ::getpid())) return -1;
  const std::string name = path.filename().string();
  int descriptor = -1;
  const auto [end, failure] = std::from_chars(name.data(), name.data() + name.size(), descriptor);
  return failure == std::errc() && end == name.data() + name.size() ? descriptor : -1;
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

Result<OutputTarget> FindOutputTarget(const std::string& name) {
  constexpr int kMostLinks = 40;  // as the kernel follows
  if (name == kStandardOutput) return OpenDescriptor(STDOUT_FILENO);
  std::filesystem::path path = name;
  for (int links = 0;; ++links) {
    if (const int descriptor = OwnDescriptor(path); descriptor >= 0)
      return OpenDescriptor(descriptor);
    std::error_code no_link;
    const std::filesystem::path to = std::filesystem::read_symlink(path, no_link);
    if (no_link) break;
    errno = ELOOP;
    if (links == kMostLinks) return Failure(ErrorCode::kUnavailable, name, "follow");
    path = to.is_absolute() ? to : path.parent_path() / to;
  }
  OutputTarget target;
  target.path = path.string();
  struct stat info {};
  if (::stat(target.path.c_str(), &info) != 0) return target;
  target.in_place = !S_ISREG(info.st_mode);
  target.permissions = static_cast<int>(info.st_mode & 07777);
  target.owner = static_cast<int>(info.st_uid);
  target.group = static_cast<int>(info.st_gid);
  return target;
}

void TakePermissions(const OutputTarget& target, const std::string& path) {
  if (target.permissions < 0) return;
  // In this order: a change of the owner clears the set-user-ID bit.
  (void)!::chown(path.c_str(), static_cast<uid_t>(target.owner), static_cast<gid_t>(target.group));
  (void)!::chmod(path.c_str(), static_cast<mode_t>(target.permissions));
}

Status WriteFileAtomically(const std::string& path, std::string_view content) {
  RIDGE_ASSIGN_OR_RETURN(const OutputTarget target, FindOutputTarget(path));
  if (target.in_place) return WriteInPlace(target, content);
  const std::string temporary = fmt::format("{}.tmp-{}", target.path, ::getpid());
  Status status = WriteNewFile(temporary, content, target);
  if (status.ok() && ::rename(temporary.c_str(), target.path.c_str()) != 0)
    status = Failure(ErrorCode::kUnavailable, target.path, "rename to");
  if (!status.ok()) {
    ::unlink(temporary.c_str());
    return status;
  }
  const std::string folder = std::filesystem::path(target.path).parent_path().string();
  return SyncPath(folder.empty() ? "." : folder);
}

Status CopyInto(const OutputTarget& target, const std::string& from) {
  const Descriptor in(::open(from.c_str(), O_RDONLY | O_CLOEXEC));
  if (in.get() < 0) return Failure(ErrorCode::kUnavailable, from, "open");
  RIDGE_ASSIGN_OR_RETURN(const int fd, OpenInPlace(target));
  Descriptor out(fd);
  char buffer[1 << 16];
  while (true) {
    const ssize_t count = ::read(in.get(), buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Failure(ErrorCode::kUnavailable, from, "read");
    if (count == 0) break;
    RIDGE_RETURN_IF_ERROR(WriteAll(out, ShownName(target), {buffer, static_cast<size_t>(count)}));
  }
  return out.Close() ? Status() : Failure(ErrorCode::kUnavailable, ShownName(target), "close");
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

namespace {

std::string HomeFolder() {
  const char* home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') return home;
  const passwd* user = ::getpwuid(::geteuid());
  const bool known = user != nullptr && user->pw_dir != nullptr && user->pw_dir[0] == '/';
  return known ? user->pw_dir : "/nonexistent";  // as Debian calls a home that is none
}

// `variable` has the folder, else it is `usual` in the home.
std::string XdgFolder(const char* variable, const char* usual) {
  const char* xdg = std::getenv(variable);
  return (xdg != nullptr && xdg[0] == '/' ? std::string(xdg) : HomeFolder() + usual) + "/ridge";
}

}  // namespace

std::string CacheFolder() { return XdgFolder("XDG_CACHE_HOME", "/.cache"); }

std::string StateFolder() { return XdgFolder("XDG_STATE_HOME", "/.local/state"); }

}  // namespace ridge
