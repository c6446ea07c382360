// Two files are never open at once, and a file's stamp and header are checked again when it is
// read: it may have been replaced.
#include "ridge/data/picture_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "ridge/core/owned_fd.h"
#include "ridge/data/image/picture.h"

namespace ridge {
namespace {

constexpr int64_t kMostFileBytes = int64_t{1} << 31;

Status BadData(const std::string& where, const std::string& what) {
  return Status(ErrorCode::kInvalidData, where + ": " + what);
}

// Reads up to `bytes` from the beginning.
Result<int64_t> ReadBeginning(int fd, const std::string& path, char* to, int64_t bytes) {
  int64_t done = 0;
  while (done < bytes) {
    const ssize_t got = ::pread(fd, to + done, static_cast<size_t>(bytes - done), done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return BadData(path,
                     fmt::format("cannot be read at byte {}: {}", done, std::strerror(errno)));
    }
    if (got == 0) break;
    done += got;
  }
  return done;
}

struct OpenFile {
  OwnedFd fd;
  FileStamp stamp;
};

Result<OpenFile> OpenPictureFile(const std::string& path) {
  OwnedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // a pipe must not block
  struct stat info {};
  if (fd.get() < 0 || ::fstat(fd.get(), &info) != 0)
    return BadData(path, std::string("cannot be opened: ") + std::strerror(errno));
  if (!S_ISREG(info.st_mode)) return BadData(path, "is no regular file");
  if (info.st_size > kMostFileBytes) {
    return BadData(path,
                   fmt::format("has {} bytes, at most {} are read", info.st_size, kMostFileBytes));
  }
  return OpenFile{std::move(fd), StampOf(info)};
}

// The header, from as much of the file as it takes.
Result<ImageHeader> ReadHeader(const std::string& path, const OpenFile& file,
                               std::vector<char>& buffer) {
  constexpr int64_t kFirst = 4 << 10, kFactor = 16;
  for (int64_t wanted = kFirst;; wanted *= kFactor) {
    const int64_t bytes = std::min(wanted, file.stamp.bytes);
    if (static_cast<int64_t>(buffer.size()) < bytes) buffer.resize(static_cast<size_t>(bytes));
    RIDGE_ASSIGN_OR_RETURN(const int64_t got,
                           ReadBeginning(file.fd.get(), path, buffer.data(), bytes));
    const bool whole = got < bytes || bytes == file.stamp.bytes;
    const auto header = ReadImageHeader(PictureBytes(buffer.data(), got), whole);
    if (!header.ok()) return BadData(path, header.status().message());
    if (*header) return **header;
  }
}

}  // namespace

Result<PictureFile> InspectPicture(const std::string& path, std::vector<char>& buffer) {
  RIDGE_ASSIGN_OR_RETURN(const OpenFile file, OpenPictureFile(path));
  RIDGE_ASSIGN_OR_RETURN(const ImageHeader header, ReadHeader(path, file, buffer));
  return PictureFile{header, file.stamp};
}

Status ReadPicture(const std::string& path, const FileStamp& stamp, char* to) {
  RIDGE_ASSIGN_OR_RETURN(const OpenFile file, OpenPictureFile(path));
  if (file.stamp != stamp) return BadData(path, kPictureChanged);
  RIDGE_ASSIGN_OR_RETURN(const int64_t got, ReadBeginning(file.fd.get(), path, to, stamp.bytes));
  if (got != stamp.bytes) return BadData(path, kPictureChanged);
  return Status();
}

std::span<const uint8_t> PictureBytes(const char* data, int64_t count) {
  return {reinterpret_cast<const uint8_t*>(data), static_cast<size_t>(count)};
}

}  // namespace ridge
