// openat2(2) with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS does all of it in the kernel, without a
// moment between check and use.  Where the system lacks it (Linux before 5.6, or a sandbox that
// forbids it) each folder of the path is opened from the one before with O_NOFOLLOW, which has no
// such moment either.
#include "ridge/onnx/file/external_data.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "ridge/onnx/file/model_check.h"

namespace ridge {

namespace {

constexpr size_t kLongestName = 4096;

std::string NameOf(const std::string& location) {
  return fmt::format("external data '{}'", location);
}

Status Refuse(const std::string& name, const std::string& text) {
  return Status(ErrorCode::kInvalidModel, fmt::format("{}: {}", NameOf(name), text));
}

// The parts of a relative path that stays where it starts.
Result<std::vector<std::string>> SplitName(const std::string& name) {
  if (name.empty()) return Refuse(name, "the name is empty; it must name a file");
  if (name.size() > kLongestName) {
    return Refuse(
        name.substr(0, 40) + "...",
        fmt::format("the name has {} bytes; at most {} are allowed", name.size(), kLongestName));
  }
  if (name.find('\0') != std::string::npos) return Refuse(name, "the name holds a zero byte");
  if (name[0] == '/') {
    return Refuse(name, "the path is absolute; it must be relative to the model's folder");
  }
  std::vector<std::string> parts;
  for (size_t start = 0; start <= name.size();) {
    const size_t end = std::min(name.find('/', start), name.size());
    const std::string part = name.substr(start, end - start);
    if (part == "..") return Refuse(name, "the path has '..'; it must stay in the model's folder");
    if (!part.empty() && part != ".") parts.push_back(part);
    start = end + 1;
  }
  if (parts.empty() || name.back() == '/') return Refuse(name, "the path names a folder, no file");
  return parts;
}

Status OpenError(const std::string& name, int flags, int error) {
  if (error == ELOOP || error == EXDEV) {
    return Refuse(name, "the path has a symbolic link; links are not followed");
  }
  if ((flags & O_ACCMODE) != O_RDONLY) {
    return Status(ErrorCode::kUnavailable, fmt::format("external data '{}': can't be written: {}",
                                                       name, std::strerror(error)));
  }
  if (error == ENOENT) return Refuse(name, "there is no such file in the model's folder");
  if (error == ENOTDIR) return Refuse(name, "part of the path is a file or a link, no folder");
  return Refuse(name, fmt::format("can't be opened: {}", std::strerror(error)));
}

// -1 with errno.
int OpenAt2(int folder, const std::string& path, int flags, mode_t mode) {
  open_how how = {};
  how.flags = static_cast<uint64_t>(flags);
  how.mode = (flags & O_CREAT) != 0 ? mode : 0;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(::syscall(SYS_openat2, folder, path.c_str(), &how, sizeof how));
}

int OpenByParts(int folder, const std::vector<std::string>& parts, int flags, mode_t mode) {
  OwnedFd inner;
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    inner = OwnedFd(::openat(i == 0 ? folder : inner.get(), parts[i].c_str(),
                             O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (inner.get() < 0) return -1;
  }
  return ::openat(parts.size() == 1 ? folder : inner.get(), parts.back().c_str(), flags, mode);
}

Status CheckRegular(int fd, const std::string& name) {
  struct stat facts = {};
  if (::fstat(fd, &facts) != 0) return Refuse(name, std::strerror(errno));
  if (!S_ISREG(facts.st_mode)) return Refuse(name, "is no regular file");
  return Status();
}

std::string Join(const std::vector<std::string>& parts) {
  std::string path = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) path += "/" + parts[i];
  return path;
}

}  // namespace

Result<OwnedFd> OpenBeneathWith(const std::string& folder, const std::string& name, int flags,
                                mode_t mode, bool openat2) {
  RIDGE_ASSIGN_OR_RETURN(const std::vector<std::string> parts, SplitName(name));
  const OwnedFd root(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (root.get() < 0) {
    return Refuse(name, fmt::format("the model's folder {} can't be opened: {}", folder,
                                    std::strerror(errno)));
  }
  // Opening a pipe must not wait for its other end.
  const int all_flags = flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  OwnedFd file(openat2 ? OpenAt2(root.get(), Join(parts), all_flags, mode) : -1);
  if (!openat2 || (file.get() < 0 && (errno == ENOSYS || errno == EPERM || errno == E2BIG))) {
    file = OwnedFd(OpenByParts(root.get(), parts, all_flags, mode));
  }
  if (file.get() < 0) return OpenError(name, flags, errno);
  RIDGE_RETURN_IF_ERROR(CheckRegular(file.get(), name));
  return file;
}

Result<OwnedFd> OpenBeneath(const std::string& folder, const std::string& name, int flags,
                            mode_t mode) {
  return OpenBeneathWith(folder, name, flags, mode, /*openat2=*/true);
}

Result<std::shared_ptr<const TensorFile>> ExternalFiles::Open(const std::string& location,
                                                              const std::string& where) {
  if (folder_.empty()) {
    return Status(
        ErrorCode::kInvalidModel,
        fmt::format("{}: lies in the file '{}', but this model has no folder", where, location));
  }
  const auto found = files_.find(location);
  if (found != files_.end() && found->second.open != nullptr) return found->second.open;
  Result<OwnedFd> fd = OpenBeneath(folder_, location, O_RDONLY);
  if (!fd.ok()) return Status(fd.status().code(), where + ": " + fd.status().message());
  RIDGE_ASSIGN_OR_RETURN(std::shared_ptr<const TensorFile> file,
                         TensorFile::Adopt(std::move(*fd), PrintableOnnxText(NameOf(location)),
                                           ErrorCode::kInvalidModel));
  if (found != files_.end()) return file;
  const bool stays = files_.size() < kMostOpen;
  files_.emplace(location, File{stays ? file : nullptr, file->size_bytes()});
  return file;
}

Result<ExternalPlace> ExternalFiles::Find(const ExternalRange& range, int64_t stored_bytes,
                                          const std::string& where) {
  RIDGE_ASSIGN_OR_RETURN(std::shared_ptr<const TensorFile> file, Open(range.location, where));
  const int64_t length = range.length_bytes < 0 ? stored_bytes : range.length_bytes;
  if (length != stored_bytes) {
    return Status(
        ErrorCode::kInvalidModel,
        fmt::format("{}: 'length' is {} bytes; its type needs {}", where, length, stored_bytes));
  }
  if (range.offset_bytes < 0 || range.offset_bytes > file->size_bytes() ||
      length > file->size_bytes() - range.offset_bytes) {
    return Status(ErrorCode::kInvalidModel,
                  fmt::format("{}: needs {} bytes from byte {} of '{}', which has {}", where,
                              length, range.offset_bytes, range.location, file->size_bytes()));
  }
  const bool stays = files_.at(range.location).open != nullptr;
  return ExternalPlace{std::move(file), range.offset_bytes, stays};
}

Status ExternalFiles::SpendCopy(const ExternalRange& range, int64_t bytes,
                                const std::string& where) {
  RIDGE_RETURN_IF_ERROR(Open(range.location, where).status());
  File& file = files_.at(range.location);
  file.copied_bytes += bytes;
  if (file.copied_bytes <= 8 * file.size_bytes) return Status();
  return Status(ErrorCode::kInvalidModel,
                fmt::format("{}: the tensors in '{}' need more than eight times its {} bytes in "
                            "memory, because they overlap",
                            where, range.location, file.size_bytes));
}

int64_t ExternalFiles::size_bytes() const {
  int64_t bytes = 0;
  for (const auto& [location, file] : files_) bytes += file.size_bytes;
  return bytes;
}

}  // namespace ridge
