#include "ridge/plan/cost/roofline.h"

#include <algorithm>
#include <cmath>

#include "ridge/core/instructions.h"

namespace ridge {
namespace {

constexpr double kFallbackFlopsPerS = 5e10;  // a profile without this dtype: one slow core
constexpr double kFallbackBytesPerS = 1e10;

double PeakFlops(const DeviceProfile& profile, DType dtype) {
  const auto found = profile.peak_flops_per_s.find(DTypeName(dtype));
  if (found != profile.peak_flops_per_s.end() && found->second > 0) return found->second;
  const auto f32 = profile.peak_flops_per_s.find("f32");
  return f32 != profile.peak_flops_per_s.end() && f32->second > 0 ? f32->second
                                                                  : kFallbackFlopsPerS;
}

// Linear between the points, over the logarithm of the work.
double CurveAt(const std::vector<EfficiencyPoint>& curve, double flops) {
  if (curve.empty()) return 1;
  if (flops <= curve.front().flops) return curve.front().efficiency;
  for (size_t i = 1; i < curve.size(); ++i) {
    const EfficiencyPoint &low = curve[i - 1], &high = curve[i];
    if (flops > high.flops) continue;
    const double t = std::log(flops / low.flops) / std::log(high.flops / low.flops);
    return low.efficiency + t * (high.efficiency - low.efficiency);
  }
  return curve.back().efficiency;
}

}  // namespace

const char* CostClassName(CostClass cost_class) {
  static constexpr const char* kNames[] = {"elementwise", "reduce", "matmul", "conv",
                                           "norm",        "pool",   "move",   "optimizer"};
  return kNames[static_cast<size_t>(cost_class)];
}

// 32 FLOPs a cycle at 3.6 GHz: two multiply-adds of 8 lanes, or one of 16.  Without multiply-adds
// it is half of that: two multiplications and two additions of 4 lanes.
DeviceProfile NominalProfile(int threads) {
  const bool fused = UsedInstructions() != Instructions::kSse4;
  const double flops_per_s = fused ? 115e9 : 57.5e9;
  DeviceProfile profile;
  profile.name = "nominal";
  profile.threads = threads;
  profile.peak_flops_per_s = {{"f64", flops_per_s / 2 * threads},
                              {"f32", flops_per_s * threads},
                              {"bf16", 2 * flops_per_s * threads},
                              {"f16", flops_per_s * threads}};
  profile.memory = {{"L2", int64_t{threads} << 20, 100e9 * threads},
                    {"L3", int64_t{16} << 20, 90e9 * threads},
                    {"DRAM", int64_t{1} << 50, 30e9}};
  profile.launch_s = 1e-6;
  profile.runtime_bytes = int64_t{40} << 20;
  profile.bytes_per_kernel = 40 * 1024;
  return profile;
}

namespace {

// The profile's rates are those of all threads.  Memory behind the caches is shared by them.
struct Share {
  double compute = 1, memory = 1;
};

Share ShareOf(const DeviceProfile& profile, const KernelChoice& choice, int64_t bytes) {
  if (!choice.one_thread || profile.threads <= 1) return {};
  const double one = 1.0 / profile.threads;
  const bool cached =
      !profile.memory.empty() && BandwidthFor(profile, bytes) > profile.memory.back().bytes_per_s;
  return {one, cached ? one : 1};
}

}  // namespace

double BandwidthFor(const DeviceProfile& profile, int64_t bytes) {
  for (const MemoryLevel& level : profile.memory) {
    if (level.bytes_per_s > 0 && bytes <= level.capacity_bytes) return level.bytes_per_s;
  }
  return profile.memory.empty() ? kFallbackBytesPerS : profile.memory.back().bytes_per_s;
}

TimeEstimate EstimateTime(const DeviceProfile& profile, CostClass cost_class, DType dtype,
                          const Cost& cost, const KernelChoice& choice) {
  const auto curve = profile.efficiency.find(CostClassName(cost_class));
  const double share = curve == profile.efficiency.end()
                           ? 1
                           : CurveAt(curve->second, std::max(1.0, static_cast<double>(cost.flops)));
  const double efficiency = std::max(1e-6, share * choice.efficiency);
  const int64_t bytes = cost.bytes_read + cost.bytes_written;
  const Share cores = ShareOf(profile, choice, bytes);
  const double compute =
      static_cast<double>(cost.flops) / (PeakFlops(profile, dtype) * efficiency * cores.compute);
  const double memory = static_cast<double>(bytes) / (BandwidthFor(profile, bytes) * cores.memory) /
                        std::min(1.0, choice.efficiency);
  TimeEstimate estimate;
  estimate.seconds = estimate.modelled_s = std::max(compute, memory) + profile.launch_s;
  estimate.bound = std::max(compute, memory) < profile.launch_s ? Bound::kLatency
                   : compute >= memory                          ? Bound::kCompute
                                                                : Bound::kMemory;
  const auto known = profile.kernel_s.find(choice.key);
  if (known != profile.kernel_s.end()) {
    estimate.seconds = known->second;
    estimate.measured = true;
  }
  return estimate;
}

DType PricedType(CostClass cost_class, const OpCall& call) {
  const bool product = cost_class == CostClass::kMatmul || cost_class == CostClass::kConv;
  if (product && call.inputs.size() > 1) {
    const DType a = call.inputs[0].dtype, b = call.inputs[1].dtype;
    if (IsFloat(a) && IsFloat(b)) return BytesPerElement(a) >= BytesPerElement(b) ? a : b;
  }
  for (const TensorType& type : call.outputs) {
    if (IsFloat(type.dtype)) return type.dtype;
  }
  return call.inputs.empty() ? DType::kF32 : call.inputs[0].dtype;
}

TimeEstimate EstimateNode(const DeviceProfile& profile, const PlannedNode& node,
                          const KernelChoice& choice) {
  const CostClass cost_class = node.def == nullptr ? CostClass::kMove : node.def->cost_class;
  return EstimateTime(profile, cost_class, PricedType(cost_class, node.call), node.cost, choice);
}

TimeEstimate EstimateNode(const DeviceProfile& profile, const PlannedNode& node) {
  return EstimateNode(profile, node, node.choice);
}

double EstimateStep(const DeviceProfile& profile, const StepPlan& step) {
  double seconds = 0;
  for (size_t n = 0; n < step.nodes.size(); ++n)
    seconds += EstimateNode(profile, step.nodes[n]).seconds * static_cast<double>(RunsOf(step, n));
  return seconds;
}

double EstimateReorder(const DeviceProfile& profile, const TensorType& type,
                       const KernelChoice& reorder) {
  const Cost cost{0, type.bytes(), type.bytes()};
  return EstimateTime(profile, CostClass::kMove, type.dtype, cost, reorder).seconds;
}

double RooflineSeconds(const StepPlan& step, double peak_flops_per_s, double bytes_per_s) {
  double seconds = 0;
  for (size_t n = 0; n < step.nodes.size(); ++n) {
    const PlannedNode& node = step.nodes[n];
    const auto bytes = static_cast<double>(node.cost.bytes_read + node.cost.bytes_written);
    seconds +=
        std::max(static_cast<double>(node.cost.flops) / peak_flops_per_s, bytes / bytes_per_s) *
        static_cast<double>(RunsOf(step, n));
  }
  return seconds;
}

}  // namespace ridge
