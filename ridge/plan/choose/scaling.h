// Scaling: what a step takes on more of a device, term by term.
//
//   step = compute + stragglers + communication + input
// Strong: the same batch on more devices.  Weak: the same batch a device.  Nothing runs.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ridge/plan/plan_json.h"

namespace ridge {

struct ScalingPoint {
  int64_t devices = 1;
  int64_t batch = 1;  // of all of them
  double compute_s = 0;
  double stragglers_s = 0;     // a step waits for the slowest (StragglerFactor)
  double communication_s = 0;  // exposed
  double input_s = 0;          // that reading takes beyond the step
  double low_s = 0, high_s = 0;

  double step_s() const { return compute_s + stragglers_s + communication_s + input_s; }
  double samples_s() const { return static_cast<double>(batch) / step_s(); }
};

// Of the plan of one of them.  The range is the plan's, else that of earlier runs, else 13 % about
// it, the worst of 53 trainings beside their plans; communication is up to 1.34 times as long
// (sums beside kernels, communication.h).
ScalingPoint ScalingPointOf(const PlanSummary& plan, int64_t devices, double input_s);

struct ScalingRequest {
  std::string title;
  std::vector<int64_t> counts;  // the first is 1
  int64_t batch = 1;            // of all devices: strong; of each: weak
};
// The powers of two up to `most`, and `most`.
std::vector<int64_t> DeviceCounts(int64_t most);

struct ScalingTable {
  std::string title;
  std::vector<ScalingPoint> strong, weak;  // by count, one device first
};
// `plan(devices, batch)` plans one of them.  Counts above the batch are left out of `strong`.
Result<ScalingTable> PlanScaling(
    const ScalingRequest& request,
    const std::function<Result<ScalingPoint>(int64_t devices, int64_t batch)>& plan);

// Samples a second over those of one device times the devices.
double LinearShare(const ScalingPoint& point, const ScalingPoint& one);

}  // namespace ridge
