#include "ridge/backend/cpu/nominal_profile.h"

namespace ridge {
namespace {

// 32 FLOPs a cycle at 3.6 GHz: two multiply-adds of 8 lanes, or one of 16.  Without multiply-adds
// it is half of that: two multiplications and two additions of 4 lanes.
constexpr double kFlopsPerS = 115e9, kFlopsPerSWithoutFma = 57.5e9;
// Of a pointwise kernel: gelu of 12.6 MB took 0.8 to 1.2 ms on two cores, a sum of as much 0.6.
constexpr double kPointwiseFlopsPerS = 15e9;
// Measured on two cores of a Zen 4: a region takes 0.5 to 1 us, the start of a kernel without one
// 0.2 to 0.4 us.
constexpr InterOpCosts kInterOp = {
    .region_s = 1e-6, .start_s = 0.3e-6, .core_to_core_bytes_per_s = 10e9};

}  // namespace

DeviceProfile NominalProfile(int threads, Instructions vectors) {
  const bool fused = vectors != Instructions::kSse4;
  const double flops_per_s = fused ? kFlopsPerS : kFlopsPerSWithoutFma;
  DeviceProfile profile;
  profile.name = "nominal";
  profile.threads = threads;
  profile.peak_flops_per_s = {{"f64", flops_per_s / 2 * threads},
                              {"f32", flops_per_s * threads},
                              {"bf16", 2 * flops_per_s * threads},
                              {"f16", flops_per_s * threads}};
  profile.memory = {{"L2", cpu::kCoreCacheBytes * threads, 100e9 * threads},
                    {"L3", cpu::kLastCacheBytes, 90e9 * threads},
                    {"DRAM", int64_t{1} << 50, 30e9}};
  profile.launch_s = 1e-6;
  profile.pointwise_flops_per_s = kPointwiseFlopsPerS * threads;
  profile.inter_op = kInterOp;
  profile.runtime_bytes = int64_t{40} << 20;
  profile.bytes_per_kernel = 40 * 1024;
  return profile;
}

}  // namespace ridge
