// Scaling: what a step takes on more of a device, term by term.
//
//   step = compute + recompute + stragglers + tensor + stages + communication + input
// Strong: the same batch on more devices.  Weak: the same batch a device.  Nothing runs.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ridge/plan/choose/layout_cost.h"
#include "ridge/plan/plan_json.h"

namespace ridge {

// Of the seconds of kernels: they may be so many times as long.  low <= 1 <= high.
struct KernelBand {
  double low = 1, high = 1;
  bool operator==(const KernelBand&) const = default;
};

struct ScalingPoint {
  int64_t devices = 1;
  int64_t batch = 1;                        // of all of them
  std::optional<LayoutChoice> layout = {};  // that the search took; none: the batch alone is shared
  double compute_s = 0;
  double recompute_s = 0;      // the forward pass again
  double stragglers_s = 0;     // a step waits for the slowest (StragglerFactor)
  double tensor_s = 0;         // collectives in line with the kernels
  double stages_s = 0;         // waiting for other stages, and sends
  double communication_s = 0;  // of gradients and parameters, exposed
  // The same where collectives beside kernels take 1.34 times as long as alone (communication.h),
  // and kernels, behind which they hide, are as fast as the band allows; sends with it.
  double slow_communication_s = 0;
  double input_s = 0;  // that reading takes beyond the step
  KernelBand band = {};
  int64_t peak_bytes = 0;   // of a device; 0: not looked at
  int64_t limit_bytes = 0;  // fewer than peak_bytes: it does not fit, and there are no seconds

  bool fits() const { return peak_bytes <= limit_bytes; }
  // With kernels so many times as long.
  double StepWith(double kernels, bool slow_collectives) const;
  double step_s() const { return StepWith(1, false); }
  double low_s() const { return StepWith(band.low, false) - band.low * stragglers_s; }
  double high_s() const { return StepWith(band.high, true); }
  double samples_s() const { return static_cast<double>(batch) / step_s(); }
};

// Of the plan of one of them.  The band is the plan's, else that of earlier runs, else 13 % about
// it, the worst of 53 trainings beside their plans.
ScalingPoint ScalingPointOf(const PlanSummary& plan, int64_t devices, double input_s);
// Of the best layout over all of them, whose rank's step is `step`.
ScalingPoint ScalingPointOf(const LayoutCost& cost, const LocalStep& step, const DeviceGroup& all,
                            double wire_share, KernelBand band, int64_t limit_bytes);

struct ScalingRequest {
  std::string title, place;     // "gpt2 on rtx4090", "rtx4090"
  std::vector<int64_t> counts;  // ascending
  int64_t batch = 1;            // strong: of all devices; weak: of each
  bool strong = true, weak = true;
};
// The powers of two up to `most`, and `most`.
std::vector<int64_t> DeviceCounts(int64_t most);

struct ScalingTable {
  std::string title, place;
  std::vector<ScalingPoint> strong, weak;  // by count; of weak the first may be that of strong
};
// `plan(devices, batch)` plans one of them.  Counts above the batch are left out of `strong`.
Result<ScalingTable> PlanScaling(
    const ScalingRequest& request,
    const std::function<Result<ScalingPoint>(int64_t devices, int64_t batch)>& plan);

// The first one that fits, against which others are compared; nullptr: none does.
const ScalingPoint* FirstFitting(const std::vector<ScalingPoint>& points);

// Samples a second over those of `first`, a device each.
double LinearShare(const ScalingPoint& point, const ScalingPoint& first);

// Samples a second over those of `first`.  The range: with equal bands kernels err alike on both,
// else each for itself.
struct SpeedUp {
  double times = 1, low = 1, high = 1;
};
SpeedUp SpeedUpOf(const ScalingPoint& point, const ScalingPoint& first);

}  // namespace ridge
