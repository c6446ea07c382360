// Containment is checked part by part: each folder on the way is opened from the one before with
// O_NOFOLLOW, so neither "..", nor a link, nor a race with a rename can lead out
// (CVE-2022-25882, CVE-2024-27318, CVE-2026-27489 of other readers).
#include "ridge/graph/onnx/external_data.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

namespace ridge {
namespace {

Status Refuse(const std::string& name, const std::string& text) {
  return Status(ErrorCode::kInvalidModel, fmt::format("external data '{}': {}", name, text));
}

// "a/b.bin" -> a, b.bin; empty when the path could leave its folder.
std::vector<std::string> SafeParts(const std::string& name) {
  std::vector<std::string> parts;
  if (name.empty() || name[0] == '/' || name.find('\0') != std::string::npos) return {};
  for (size_t at = 0; at <= name.size();) {
    const size_t end = std::min(name.find('/', at), name.size());
    const std::string part = name.substr(at, end - at);
    if (part.empty() || part == "..") return {};
    if (part != ".") parts.push_back(part);
    at = end + 1;
  }
  return parts;
}

Result<int> OpenPart(int folder, const std::string& part, bool last, const std::string& name) {
  const int flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | (last ? 0 : O_DIRECTORY);
  const int fd = openat(folder, part.c_str(), flags);
  if (fd >= 0) return fd;
  if (errno == ELOOP || (errno == ENOTDIR && !last))
    return Refuse(
        name, fmt::format("'{}' is a symbolic link or no folder; links are not followed", part));
  return Refuse(name, fmt::format("cannot be opened: {}", std::strerror(errno)));
}

}  // namespace

Result<int> OpenBeneath(const std::string& folder, const std::string& name) {
  const std::vector<std::string> parts = SafeParts(name);
  if (parts.empty()) {
    return Refuse(name, "must be a relative path inside the model's folder, without '..'");
  }
  int fd = open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return Refuse(name, fmt::format("folder '{}': {}", folder, std::strerror(errno)));
  for (size_t i = 0; i < parts.size(); ++i) {
    const Result<int> next = OpenPart(fd, parts[i], i + 1 == parts.size(), name);
    close(fd);
    if (!next.ok()) return next.status();
    fd = *next;
  }
  struct stat facts = {};
  if (fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode)) return fd;
  close(fd);
  return Refuse(name, "is no regular file");
}

Result<MappedBytes> MapBeneath(const std::string& folder, const std::string& name, int64_t offset,
                               int64_t length) {
  RIDGE_ASSIGN_OR_RETURN(const int fd, OpenBeneath(folder, name));
  struct stat facts = {};
  const bool known = fstat(fd, &facts) == 0;
  const int64_t size = known ? facts.st_size : 0;
  if (offset < 0 || offset > size || length > size - offset) {
    close(fd);
    return Refuse(name, fmt::format("holds {} bytes; offset {} and length {} lie outside", size,
                                    offset, length));
  }
  const int64_t wanted = length < 0 ? size - offset : length;
  if (wanted == 0) {
    close(fd);
    return MappedBytes{"", 0, nullptr};
  }
  const int64_t start = offset / sysconf(_SC_PAGESIZE) * sysconf(_SC_PAGESIZE);
  const auto mapped = static_cast<size_t>(wanted + offset - start);
  void* base = mmap(nullptr, mapped, PROT_READ, MAP_PRIVATE, fd, start);
  close(fd);
  if (base == MAP_FAILED) return Refuse(name, fmt::format("mmap: {}", std::strerror(errno)));
  std::shared_ptr<const void> owner(
      base, [mapped](const void* p) { munmap(const_cast<void*>(p), mapped); });
  return MappedBytes{static_cast<const char*>(base) + (offset - start), wanted, std::move(owner)};
}

}  // namespace ridge
