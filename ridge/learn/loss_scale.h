// LossScale: training with gradients of f16, as nodes.
//
// The smallest f16 is 2^-24; smaller gradients would be 0.  So the backward pass starts at `scale`
// instead of 1, and gradients are divided by it, in f32, before they are clipped and applied
// (Micikevicius et al., "Mixed Precision Training", 2018).  Where one of them is not finite, the
// whole update does not happen: a select keeps parameters, moments, statistics and counts.
//
//   finite = |sum of all gradients| < infinity
//   scale = finite ? scale : max(1, scale / 2)
//   scale = min(2^24, 2 scale)      after growth_interval updates in a row that happened
//
// States: the scale f32[], the updates since it changed f32[], and all updates that happened i64[],
// by which optimizers count.  A constant scale has the last of them only.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ridge/graph/builder.h"

namespace ridge {

inline constexpr char kLossScaleState[] = "ridge.loss_scale";
inline constexpr char kGoodUpdatesState[] = "ridge.good_updates";
inline constexpr char kUpdatesState[] = "ridge.updates";

inline constexpr double kLeastLossScale = 1, kMostLossScale = 1 << 24;

struct LossScaleOptions {
  bool dynamic = true;
  double scale = 32768;            // at the start
  int64_t growth_interval = 2000;  // below 2^24, up to which f32 counts
};

// "", "dynamic", or a constant scale from kLeastLossScale to kMostLossScale.  Fails with
// kInvalidArgument.
Result<LossScaleOptions> ParseLossScale(const std::string& text);

// Why this constant scale loses gradients; empty from 128 to 65,536.
std::string LossScaleDoubt(double scale);

class LossScale {
 public:
  // `b` must outlive it.
  LossScale(GraphBuilder& b, const LossScaleOptions& options);

  // What the backward pass starts from.
  Value Scaled(Value loss) const;
  // What gradients of that are to be multiplied by: f32[].
  Value Inverse() const;

  // Whether all of them are finite: bool[].  A sum beyond f32 is not.
  static Value AllFinite(const std::vector<Value>& values);
  // The statistics that the graph updates so far stay as they are unless `finite`.
  static void SelectStatistics(GraphBuilder& b, Value finite);

  // The number of this update among those that happen: i64[], 1 at the first.
  Value Step();
  // Updates of its own states.
  void Append(Value finite);

 private:
  void AppendDynamic(Value finite);

  GraphBuilder& b_;
  const LossScaleOptions options_;
  Value scale_;  // f32[]
  Value updates_;
};

}  // namespace ridge
