#include "ridge/plan/choose/scaling.h"

#include <algorithm>

#include "ridge/plan/choose/communication.h"

namespace ridge {
namespace {

constexpr double kPlanError = 0.13;  // bench/plan_error.py --table, 53 runs: the worst
constexpr double kContention = 1.34;

KernelBand BandOf(const PlanSummary& plan) {
  if (plan.range && plan.step_s > 0)
    return {plan.range->low_s / plan.step_s, plan.range->high_s / plan.step_s};
  if (plan.expected) return {plan.expected->low, plan.expected->high};
  return {1 - kPlanError, 1 + kPlanError};
}

}  // namespace

double ScalingPoint::StepWith(double kernels, bool slow_collectives) const {
  const double collectives_s =
      slow_collectives ? kContention * tensor_s + slow_communication_s : tensor_s + communication_s;
  return kernels * (compute_s + recompute_s + stragglers_s + stages_s) + collectives_s + input_s;
}

ScalingPoint ScalingPointOf(const PlanSummary& plan, int64_t devices, double input_s) {
  ScalingPoint point;
  point.devices = devices;
  point.batch = static_cast<int64_t>(plan.samples());
  if (plan.communication) point.communication_s = plan.communication->exposed_s;
  point.slow_communication_s = kContention * point.communication_s;
  point.compute_s = plan.step_s - point.communication_s;
  point.stragglers_s = point.compute_s * (StragglerFactor(devices) - 1);
  point.input_s = input_s;
  point.band = BandOf(plan);
  return point;
}

ScalingPoint ScalingPointOf(const LayoutCost& cost, const LocalStep& step, const DeviceGroup& all,
                            double wire_share, KernelBand band, int64_t limit_bytes) {
  const LayoutSeconds& seconds = cost.seconds;
  ScalingPoint point;
  point.devices = cost.choice.devices();
  point.batch = cost.choice.batch();
  point.layout = cost.choice;
  point.compute_s = seconds.kernels + seconds.update;
  point.recompute_s = seconds.recompute;
  point.stragglers_s = seconds.stragglers;
  point.tensor_s = seconds.tensor;
  point.stages_s = seconds.pipeline + seconds.send;
  point.communication_s = seconds.data;
  point.slow_communication_s = kContention * seconds.data;
  const std::optional<LayoutCost> slow =
      ComposeLayout(WithKernels(step, band.low), cost.choice, all, kContention * wire_share);
  if (slow) point.slow_communication_s = std::max(point.slow_communication_s, slow->seconds.data);
  point.slow_communication_s += (kContention - 1) * seconds.send;
  point.band = band;
  point.peak_bytes = cost.bytes.all();
  point.limit_bytes = limit_bytes;
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
  table.place = request.place;
  for (const int64_t count : request.counts) {
    const bool is_strong = request.strong && count <= request.batch;
    if (is_strong) {
      RIDGE_ASSIGN_OR_RETURN(const ScalingPoint point, plan(count, request.batch));
      table.strong.push_back(point);
    }
    if (!request.weak) continue;
    if (count == 1 && is_strong) {
      table.weak.push_back(table.strong.front());
      continue;
    }
    RIDGE_ASSIGN_OR_RETURN(const ScalingPoint point, plan(count, count * request.batch));
    table.weak.push_back(point);
  }
  return table;
}

const ScalingPoint* FirstFitting(const std::vector<ScalingPoint>& points) {
  const auto first = std::find_if(points.begin(), points.end(),
                                  [](const ScalingPoint& point) { return point.fits(); });
  return first == points.end() ? nullptr : &*first;
}

double LinearShare(const ScalingPoint& point, const ScalingPoint& first) {
  return SpeedUpOf(point, first).times * static_cast<double>(first.devices) /
         static_cast<double>(point.devices);
}

SpeedUp SpeedUpOf(const ScalingPoint& point, const ScalingPoint& first) {
  const auto with = [&](double kernels, bool slow) {
    return static_cast<double>(point.batch) / point.StepWith(kernels, slow) *
           first.StepWith(kernels, slow) / static_cast<double>(first.batch);
  };
  const double times = with(1, false);
  if (point.band != first.band) {
    const double per_batch = static_cast<double>(point.batch) / static_cast<double>(first.batch);
    return {times, per_batch * first.low_s() / point.high_s(),
            per_batch * first.high_s() / point.low_s()};
  }
  double low = times, high = times;
  for (const double kernels : {point.band.low, point.band.high}) {
    for (const bool slow : {false, true}) {
      low = std::min(low, with(kernels, slow));
      high = std::max(high, with(kernels, slow));
    }
  }
  return {times, low, high};
}

}  // namespace ridge
