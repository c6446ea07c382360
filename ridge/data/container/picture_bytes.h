// The header of a picture that lies somewhere in a file, from as much of it as it takes.
#pragma once
#include <functional>
#include <string_view>

#include "ridge/data/image/header.h"

namespace ridge {

inline std::span<const uint8_t> AsBytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// `read` gives the first `count` bytes of the picture's `bytes`.  Fails as ReadImageHeader does.
Result<ImageHeader> ReadPictureHeader(
    int64_t bytes, const std::function<Result<std::string_view>(int64_t count)>& read);

}  // namespace ridge
