// EncodePng: pixels as the bytes of a PNG file.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ridge/data/image/crop.h"

namespace ridge {

// Pixels [height, width, 3].
struct RgbPicture {
  ImageSize size;
  std::vector<uint8_t> pixels;

  static RgbPicture Filled(const ImageSize& size, uint8_t value);
  uint8_t* At(int64_t y, int64_t x) { return pixels.data() + 3 * (y * size.width + x); }
};

// 8 bits a channel.  REQUIRES: a pixel or more, sides below 2^31.
std::string EncodePng(const RgbPicture& picture);

}  // namespace ridge
