#include "ridge/data/image/transforms/rand_augment.h"

#include <cmath>

#include "ridge/data/image/transforms/color.h"
#include "ridge/data/image/transforms/filters.h"
#include "ridge/data/image/transforms/geometry.h"

namespace ridge {

void ApplyRandOperation(const PictureShape& shape, RandOperation operation, int magnitude,
                        bool negative, std::span<char> scratch, uint8_t* pixels) {
  const double part = magnitude / static_cast<double>(kMostMagnitude);
  const double sign = negative ? -1 : 1;
  const double shear = sign * part * 0.3, enhance = 1 + sign * part * 0.9;
  const auto shift = [&](int64_t side) {
    return static_cast<int64_t>(sign * part * (150.0 / 331.0 * static_cast<double>(side)));
  };
  switch (operation) {
    case RandOperation::kIdentity:
      return;
    case RandOperation::kShearX:
      return Affine(shape, {1, shear, 0, 0, 1, 0}, scratch, pixels);
    case RandOperation::kShearY:
      return Affine(shape, {1, 0, 0, shear, 1, 0}, scratch, pixels);
    case RandOperation::kTranslateX:
      return Shift(shape, 0, -shift(shape.width), scratch, pixels);
    case RandOperation::kTranslateY:
      return Shift(shape, -shift(shape.height), 0, scratch, pixels);
    case RandOperation::kRotate:
      return Rotate(shape, sign * part * 30, scratch, pixels);
    case RandOperation::kBrightness:
      return AdjustBrightness(shape, enhance, pixels);
    case RandOperation::kColor:
      return AdjustSaturation(shape, enhance, pixels);
    case RandOperation::kContrast:
      return AdjustContrast(shape, enhance, pixels);
    case RandOperation::kSharpness:
      return AdjustSharpness(shape, enhance, scratch, pixels);
    case RandOperation::kPosterize:
      return Posterize(shape, 8 - static_cast<int>(std::nearbyint(part * 4)), pixels);
    case RandOperation::kSolarize:
      return Solarize(shape, 255 - 255 * part, pixels);
    case RandOperation::kAutoContrast:
      return AutoContrast(shape, pixels);
    case RandOperation::kEqualize:
      return Equalize(shape, pixels);
  }
}

}  // namespace ridge
