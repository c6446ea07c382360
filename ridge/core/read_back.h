// ReadBack: the checksum of bytes that were written to a file.
#pragma once
#include <cstdint>

namespace ridge {

struct BytesRead {
  int64_t count = 0;  // up to the file's end
  uint32_t crc32c = 0;
  int error = 0;  // errno of the read that failed
};

// Of [begin, end) of an open file, from the disk and not from what the system still has in memory,
// where that can be asked for.
BytesRead ReadBack(int fd, int64_t begin, int64_t end);

}  // namespace ridge
