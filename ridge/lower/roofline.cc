#include "ridge/lower/roofline.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ridge/lower/kernel_query.h"
#include "ridge/lower/kernel_rates.h"

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

double Bandwidth(std::span<const MemoryLevel> memory, int64_t bytes) {
  for (const MemoryLevel& level : memory) {
    if (level.bytes_per_s > 0 && bytes <= level.capacity_bytes) return level.bytes_per_s;
  }
  return memory.empty() ? kFallbackBytesPerS : memory.back().bytes_per_s;
}

// The last level before the memory is shared; each thread has a part of the level before that.
DeviceFacts FactsOf(const DeviceProfile& profile) {
  const std::vector<MemoryLevel>& memory = profile.memory;
  DeviceFacts facts;
  facts.name = profile.name;
  facts.threads = std::max(1, profile.threads);
  facts.launch_s = profile.launch_s;
  facts.memory_bytes_per_s = memory.empty() ? kFallbackBytesPerS : memory.back().bytes_per_s;
  facts.pointwise_flops_per_s = profile.pointwise_flops_per_s;
  if (memory.size() > 1) facts.last_cache_bytes = memory[memory.size() - 2].capacity_bytes;
  if (memory.size() > 2)
    facts.core_cache_bytes = memory[memory.size() - 3].capacity_bytes / facts.threads;
  facts.inter_op = profile.inter_op;
  facts.runtime_bytes = profile.runtime_bytes;
  facts.bytes_per_kernel = profile.bytes_per_kernel;
  return facts;
}

}  // namespace

const char* CostClassName(CostClass cost_class) {
  static constexpr const char* kNames[] = {"elementwise", "reduce", "matmul", "conv",
                                           "norm",        "pool",   "move",   "optimizer"};
  return kNames[static_cast<size_t>(cost_class)];
}

double BandwidthFor(const DeviceProfile& profile, int64_t bytes) {
  return Bandwidth(profile.memory, bytes);
}

Roofline::Roofline(DeviceProfile profile)
    : profile_(std::move(profile)), facts_(FactsOf(profile_)) {}

double Roofline::BytesPerS(int64_t bytes) const { return Bandwidth(profile_.memory, bytes); }

TimeEstimate Roofline::Estimate(const Work& work, const KernelChoice& choice) const {
  TimeEstimate estimate = Model(work, choice, profile_.memory);
  if (const auto rated_s = RatedSeconds(profile_.kernel_rates, work, choice))
    estimate.modelled_s = *rated_s;
  const auto known = profile_.kernel_s.find(choice.key);
  if (known != profile_.kernel_s.end()) estimate.measured_s = known->second;
  return estimate;
}

double Roofline::CachedSeconds(const Work& work, const KernelChoice& choice) const {
  const MemoryLevel fastest = {"", INT64_MAX, BytesPerS(0)};
  return Model(work, choice, {&fastest, 1}).modelled_s;
}

double Roofline::Efficiency(const Work& work, const KernelChoice& choice) const {
  const auto curve = profile_.efficiency.find(CostClassName(work.cost_class));
  const double flops = std::max(1.0, static_cast<double>(work.cost.flops));
  double share = curve == profile_.efficiency.end() ? 1 : CurveAt(curve->second, flops);
  if (const auto ramp = profile_.ramp_s.find(CostClassName(work.cost_class));
      ramp != profile_.ramp_s.end()) {
    const double alone_s = flops / PeakFlops(profile_, work.dtype);
    share *= alone_s / (alone_s + ramp->second);
  }
  return std::max(1e-9, share * choice.efficiency);
}

// The profile's rates are those of all threads.  Memory behind the caches is shared by them.
TimeEstimate Roofline::Model(const Work& work, const KernelChoice& choice,
                             std::span<const MemoryLevel> memory) const {
  const int64_t bytes = work.cost.bytes_read + work.cost.bytes_written;
  double flops_per_s = PeakFlops(profile_, work.dtype);
  double bytes_per_s = Bandwidth(memory, bytes);
  if (choice.one_thread) {
    flops_per_s /= facts_.threads;
    const bool cached = !memory.empty() && bytes_per_s > memory.back().bytes_per_s;
    if (cached) bytes_per_s /= facts_.threads;
  }
  const double compute_s =
      static_cast<double>(work.cost.flops) / (flops_per_s * Efficiency(work, choice));
  const double memory_s =
      static_cast<double>(bytes) / bytes_per_s / std::min(1.0, choice.efficiency);
  TimeEstimate estimate;
  estimate.modelled_s = std::max(compute_s, memory_s) + facts_.launch_s + choice.extra_s;
  estimate.bound = std::max(compute_s, memory_s) < facts_.launch_s ? Bound::kLatency
                   : compute_s >= memory_s                         ? Bound::kCompute
                                                                   : Bound::kMemory;
  return estimate;
}

}  // namespace ridge
