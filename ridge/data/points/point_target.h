// PointTarget: what every point cloud becomes before a model sees it.
#pragma once
#include <cstdint>

#include "ridge/core/shape.h"

namespace ridge {

inline constexpr int64_t kMostPicked = int64_t{1} << 20;  // points of a sample

enum class PointPick {
  kEven,      // evenly spaced in the order of the file
  kFirst,     // the first ones
  kFarthest,  // the first one, then each time the farthest from all before
};
enum class PointScale {
  kSphere,  // the mean becomes 0, the largest distance from it 1
  kNone,
};

struct PointTarget {
  int64_t count = 1024;  // a cloud of fewer repeats its points
  PointPick pick = PointPick::kEven;
  PointScale scale = PointScale::kSphere;

  TensorType type() const { return {DType::kF32, {count, 3}}; }
  bool operator==(const PointTarget&) const = default;
};

}  // namespace ridge
