// RandAugment (Cubuk et al., 2019) as torchvision has it: 14 operations, 31 magnitudes, nearest
// pixels, black beyond the picture.
#pragma once
#include "ridge/data/image/transforms/transform.h"

namespace ridge {

inline constexpr int kMostMagnitude = 30;

enum class RandOperation {
  kIdentity,
  kShearX,
  kShearY,
  kTranslateX,
  kTranslateY,
  kRotate,
  kBrightness,
  kColor,
  kContrast,
  kSharpness,
  kPosterize,
  kSolarize,
  kAutoContrast,
  kEqualize,
};
inline constexpr int kRandOperations = 14;

// Whether it moves pixels, and changes none.
inline bool IsMove(RandOperation operation) {
  return operation >= RandOperation::kShearX && operation <= RandOperation::kRotate;
}

// One operation with a magnitude of 0 to 30; `negative` for those that have two directions.
// `scratch`: shape.bytes().
void ApplyRandOperation(const PictureShape& shape, RandOperation operation, int magnitude,
                        bool negative, std::span<char> scratch, uint8_t* pixels);

}  // namespace ridge
