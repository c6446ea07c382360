// PointAugmentation: random changes of training point clouds, "draw,rotate,jitter".
//
//   draw                       other points of larger clouds; it comes first, and the source does
//   it rotate[:AXIS[:DEGREES]]    about x, y (y) or z by up to DEGREES (180) either way
//   jitter[:SIGMA[:MOST]]      each coordinate by a normal number times SIGMA (0.01), at most MOST
//                              (0.05)
//   scale[:LEAST[:MOST]]       by one number from LEAST (0.8) to MOST (1.25)
//   shift[:MOST]               along each axis by up to MOST (0.1)
//   drop[:MOST]                a share of up to MOST (0.875) of the points becomes the first point
//
// The numbers are those of PointNet++'s public trainings.  Draws are functions of (seed, stage,
// epoch, sample), as those of pictures are (image/transforms/transform.h).  Thread-safe.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ridge/core/status.h"
#include "ridge/data/image/transforms/random_box.h"

namespace ridge {

// What --augment may say of points, for messages.
inline constexpr const char* kPointTransforms =
    "draw, rotate[:AXIS[:DEGREES]], jitter[:SIGMA[:MOST]], scale[:LEAST[:MOST]], shift[:MOST], "
    "drop[:MOST]";

using PointNumbers = std::array<double, 2>;

class PointAugmentation {
 public:
  // Fails with kInvalidArgument; the message is the bare reason.
  static Result<PointAugmentation> Parse(const std::string& text, uint64_t seed);

  bool draws() const { return draws_; }
  CropDraw Draw(int64_t epoch, int64_t sample) const;  // REQUIRES: draws()
  void Apply(int64_t epoch, int64_t sample, int64_t count, float* points) const;

  using Apply3 = void (*)(const PointNumbers&, TransformDraws&, int64_t count, float* points);

 private:
  struct Stage {
    Apply3 apply = nullptr;
    PointNumbers numbers = {};
    RandomKey key;  // without the epoch
  };
  bool draws_ = false;
  RandomKey draw_key_;
  std::vector<Stage> stages_;
};

}  // namespace ridge
