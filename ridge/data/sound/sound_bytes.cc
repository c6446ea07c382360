#include "ridge/data/sound/sound_bytes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace ridge {

Result<int64_t> SoundInMemory::ReadAt(int64_t offset, std::span<char> to) const {
  const int64_t count = std::clamp<int64_t>(size() - offset, 0, static_cast<int64_t>(to.size()));
  if (count > 0) std::memcpy(to.data(), bytes_.data() + offset, static_cast<size_t>(count));
  return count;
}

Result<SoundFile> SoundFile::Open(const std::string& path) {
  OwnedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // a pipe must not block
  struct stat info {};
  if (fd.get() < 0 || ::fstat(fd.get(), &info) != 0) {
    return Status(ErrorCode::kInvalidData, path + ": cannot be opened: " + std::strerror(errno));
  }
  if (!S_ISREG(info.st_mode)) return Status(ErrorCode::kInvalidData, path + ": is no regular file");
  return SoundFile(std::move(fd), StampOf(info));
}

Result<int64_t> SoundFile::ReadAt(int64_t offset, std::span<char> to) const {
  int64_t done = 0;
  const auto bytes = static_cast<int64_t>(to.size());
  while (done < bytes) {
    const ssize_t got =
        ::pread(fd_.get(), to.data() + done, static_cast<size_t>(bytes - done), offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return Status(
          ErrorCode::kInvalidData,
          "cannot be read at byte " + std::to_string(offset + done) + ": " + std::strerror(errno));
    }
    if (got == 0) break;
    done += got;
  }
  return done;
}

}  // namespace ridge
