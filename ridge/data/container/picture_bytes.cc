#include "ridge/data/container/picture_bytes.h"

#include <algorithm>

namespace ridge {

Result<ImageHeader> ReadPictureHeader(
    int64_t bytes, const std::function<Result<std::string_view>(int64_t count)>& read) {
  constexpr int64_t kFirst = 1 << 10, kFactor = 16;
  for (int64_t wanted = kFirst;; wanted *= kFactor) {
    const int64_t count = std::min(wanted, bytes);
    RIDGE_ASSIGN_OR_RETURN(const std::string_view start, read(count));
    RIDGE_ASSIGN_OR_RETURN(const auto header, ReadImageHeader(AsBytes(start), count == bytes));
    if (header) return *header;
  }
}

}  // namespace ridge
