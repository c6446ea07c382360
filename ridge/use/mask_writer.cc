#include "ridge/use/mask_writer.h"

#include <algorithm>

#include "ridge/core/files.h"
#include "ridge/data/image/mask_picture.h"
#include "ridge/data/image_folder.h"

namespace ridge {
namespace {

constexpr uint8_t kNotSeen = 255;

// The mask's column of a picture's one; -1 where it was cut off.
int64_t MaskPixel(const ResizeAxis& axis, int64_t at) {
  const int64_t scaled = (2 * at + 1) * axis.out / (2 * axis.in) - axis.first;
  return scaled >= 0 && scaled < axis.count ? scaled : -1;
}

}  // namespace

std::vector<uint8_t> ClassOfPixels(std::span<const double> scores, int64_t classes) {
  const size_t pixels = scores.size() / static_cast<size_t>(classes);
  std::vector<uint8_t> ids(pixels, 0);
  for (size_t c = 1; c < static_cast<size_t>(classes); ++c) {
    for (size_t p = 0; p < pixels; ++p) {
      if (scores[c * pixels + p] > scores[ids[p] * pixels + p]) ids[p] = static_cast<uint8_t>(c);
    }
  }
  return ids;
}

std::vector<uint8_t> MaskOfPicture(std::span<const uint8_t> ids, const PictureTarget& target,
                                   const ImageSize& picture) {
  const ResizeCall call =
      FitPicture(picture, target.size, target.fit, target.filter, /*channels=*/1);
  std::vector<uint8_t> mask;
  mask.reserve(static_cast<size_t>(picture.height * picture.width));
  for (int64_t y = 0; y < picture.height; ++y) {
    const int64_t row = MaskPixel(call.y, y);
    for (int64_t x = 0; x < picture.width; ++x) {
      const int64_t column = MaskPixel(call.x, x);
      const bool seen = row >= 0 && column >= 0;
      mask.push_back(seen ? ids[static_cast<size_t>(row * target.size.width + column)] : kNotSeen);
    }
  }
  return mask;
}

Result<std::string> MaskWriter::Write(const std::string& input, std::span<const uint8_t> ids) {
  const std::string path = paths_.Next(input), file = path + ".png";
  if (!target_ || !IsPictureFile(input)) {
    RIDGE_RETURN_IF_ERROR(WriteFileAtomically(file, EncodeMaskPng(size_, ids)));
    return file;
  }
  RIDGE_ASSIGN_OR_RETURN(RgbPicture picture, ReadRgb(input));
  std::vector<uint8_t> mask = MaskOfPicture(ids, *target_, picture.size);
  RIDGE_RETURN_IF_ERROR(WriteFileAtomically(file, EncodeMaskPng(picture.size, mask)));
  std::replace(mask.begin(), mask.end(), kNotSeen, uint8_t{0});
  OverlayMask(mask, picture);
  RIDGE_RETURN_IF_ERROR(WriteFileAtomically(path + ".overlay.png", EncodePng(picture)));
  return file;
}

}  // namespace ridge
