#include "ridge/core/read_back.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "ridge/core/crc32c.h"

namespace ridge {

BytesRead ReadBack(int fd, int64_t begin, int64_t end) {
  constexpr int64_t kPieceBytes = int64_t{1} << 20;
  ::posix_fadvise(fd, begin, end - begin, POSIX_FADV_DONTNEED);
  std::vector<char> piece(static_cast<size_t>(std::min(kPieceBytes, end - begin)));
  BytesRead read;
  while (begin + read.count < end) {
    const auto most = static_cast<size_t>(std::min(kPieceBytes, end - begin - read.count));
    const ssize_t count = ::pread(fd, piece.data(), most, begin + read.count);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) read.error = errno;
    if (count <= 0) return read;
    read.crc32c = Crc32c({piece.data(), static_cast<size_t>(count)}, read.crc32c);
    read.count += count;
  }
  return read;
}

}  // namespace ridge
