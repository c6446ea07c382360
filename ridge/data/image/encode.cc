#include "ridge/data/image/encode.h"

#include <png.h>

#include <cstring>

#include "ridge/core/status.h"

namespace ridge {

RgbPicture RgbPicture::Filled(const ImageSize& size, uint8_t value) {
  return {size, std::vector<uint8_t>(static_cast<size_t>(3 * size.height * size.width), value)};
}

// libpng's simplified interface: it neither jumps nor prints.
std::string EncodePng(const RgbPicture& picture) {
  png_image image;
  std::memset(&image, 0, sizeof(image));
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(picture.size.width);
  image.height = static_cast<png_uint_32>(picture.size.height);
  image.format = PNG_FORMAT_RGB;
  png_alloc_size_t bytes = 0;
  const auto write = [&](void* to) {
    return png_image_write_to_memory(&image, to, &bytes, /*convert_to_8_bit=*/0,
                                     picture.pixels.data(), /*row_stride=*/0,
                                     /*colormap=*/nullptr);
  };
  RIDGE_CHECK(write(nullptr) != 0, image.message);
  std::string file(bytes, '\0');
  RIDGE_CHECK(write(file.data()) != 0, image.message);
  file.resize(bytes);
  return file;
}

}  // namespace ridge
