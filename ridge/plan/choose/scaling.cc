#include "ridge/plan/choose/scaling.h"

#include "ridge/plan/choose/communication.h"

namespace ridge {
namespace {

constexpr double kPlanError = 0.13;  // bench/plan_error.py --table, 53 runs: the worst
constexpr double kContention = 1.34;

struct Band {
  double low = 1 - kPlanError, high = 1 + kPlanError;  // of the seconds that are planned
};

Band BandOf(const PlanSummary& plan) {
  if (plan.range && plan.step_s > 0)
    return {plan.range->low_s / plan.step_s, plan.range->high_s / plan.step_s};
  if (plan.expected) return {plan.expected->low, plan.expected->high};
  return {};
}

}  // namespace

ScalingPoint ScalingPointOf(const PlanSummary& plan, int64_t devices, double input_s) {
  ScalingPoint point;
  point.devices = devices;
  point.batch = static_cast<int64_t>(plan.samples());
  if (plan.communication) point.communication_s = plan.communication->exposed_s;
  point.compute_s = plan.step_s - point.communication_s;
  point.stragglers_s = point.compute_s * (StragglerFactor(devices) - 1);
  point.input_s = input_s;
  const Band band = BandOf(plan);
  point.low_s = band.low * point.compute_s + point.communication_s + input_s;
  point.high_s = band.high * (point.compute_s + point.stragglers_s) +
                 kContention * point.communication_s + input_s;
  return point;
}

std::vector<int64_t> DeviceCounts(int64_t most) {
  std::vector<int64_t> counts;
  for (int64_t count = 1; count < most; count *= 2) counts.push_back(count);
  counts.push_back(most);
  return counts;
}

Result<ScalingTable> PlanScaling(
    const ScalingRequest& request,
    const std::function<Result<ScalingPoint>(int64_t devices, int64_t batch)>& plan) {
  ScalingTable table;
  table.title = request.title;
  for (const int64_t count : request.counts) {
    if (count <= request.batch) {
      RIDGE_ASSIGN_OR_RETURN(const ScalingPoint point, plan(count, request.batch));
      table.strong.push_back(point);
    }
    if (count == 1) {
      table.weak.push_back(table.strong.front());
      continue;
    }
    RIDGE_ASSIGN_OR_RETURN(const ScalingPoint point, plan(count, count * request.batch));
    table.weak.push_back(point);
  }
  return table;
}

double LinearShare(const ScalingPoint& point, const ScalingPoint& one) {
  return point.samples_s() / (one.samples_s() * static_cast<double>(point.devices));
}

}  // namespace ridge
