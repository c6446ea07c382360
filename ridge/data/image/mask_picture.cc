#include "ridge/data/image/mask_picture.h"

#include <png.h>

#include <cstring>

#include "ridge/core/status.h"

namespace ridge {

// Three bits of the id a byte, from the highest: VOCdevkit's VOClabelcolormap.
std::array<uint8_t, 3> ClassColor(uint8_t id) {
  std::array<uint8_t, 3> color{};
  for (unsigned level = 0; level < 3; ++level) {
    for (unsigned channel = 0; channel < 3; ++channel) {
      const unsigned bit = (id >> (3 * level + channel)) & 1U;
      color[channel] = static_cast<uint8_t>(color[channel] | bit << (7 - level));
    }
  }
  return color;
}

std::string EncodeMaskPng(const ImageSize& size, std::span<const uint8_t> ids) {
  std::array<uint8_t, 3 * 256> palette;
  for (size_t id = 0; id < 256; ++id) {
    const std::array<uint8_t, 3> color = ClassColor(static_cast<uint8_t>(id));
    std::memcpy(palette.data() + 3 * id, color.data(), color.size());
  }
  png_image image;
  std::memset(&image, 0, sizeof(image));
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(size.width);
  image.height = static_cast<png_uint_32>(size.height);
  image.format = PNG_FORMAT_RGB_COLORMAP;
  image.colormap_entries = 256;
  png_alloc_size_t bytes = 0;
  const auto write = [&](void* to) {
    return png_image_write_to_memory(&image, to, &bytes, /*convert_to_8_bit=*/0, ids.data(),
                                     /*row_stride=*/0, palette.data());
  };
  RIDGE_CHECK(write(nullptr) != 0, image.message);
  std::string file(bytes, '\0');
  RIDGE_CHECK(write(file.data()) != 0, image.message);
  file.resize(bytes);
  return file;
}

void OverlayMask(std::span<const uint8_t> ids, RgbPicture& picture) {
  for (size_t p = 0; p < ids.size(); ++p) {
    if (ids[p] == 0) continue;
    const std::array<uint8_t, 3> color = ClassColor(ids[p]);
    for (size_t c = 0; c < 3; ++c) {
      uint8_t& level = picture.pixels[3 * p + c];
      level = static_cast<uint8_t>((level + color[c] + 1) / 2);
    }
  }
}

}  // namespace ridge
