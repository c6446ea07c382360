#include "ridge/backend/cuda/nominal_gpu.h"

namespace ridge::cuda {
namespace {

// Dense peaks without TF32, and memory: NVIDIA H100 data sheet, SXM.
constexpr double kF64 = 34e12, kF32 = 67e12, kHalf = 989e12, kBytesPerS = 3.35e12;
// Shares of them: the same that plan/hardware/planned_device.cc takes, with their sources.
constexpr double kProducts = 0.8, kConvolutions = 0.68, kBandwidth = 0.85, kCacheOverMemory = 2.5;
constexpr double kHalfSpeedSeconds = 10e-6, kGapSeconds = 1e-6;
constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kHeldBytes = 25 * kMiB;  // half of the last cache
constexpr int64_t kContextBytes = 600 * kMiB, kModuleBytes = 40 << 10;

}  // namespace

DeviceProfile NominalGpuProfile() {
  DeviceProfile profile;
  profile.id = profile.name = "nominal GPU";
  profile.peak_flops_per_s = {{"f64", kF64}, {"f32", kF32}, {"bf16", kHalf}, {"f16", kHalf}};
  const double bytes_per_s = kBytesPerS * kBandwidth;
  profile.memory = {{"L2", kHeldBytes, kCacheOverMemory * bytes_per_s},
                    {"memory", int64_t{1} << 50, bytes_per_s}};
  profile.launch_s = kGapSeconds;
  profile.pointwise_flops_per_s = kF32;
  profile.efficiency = {{"matmul", {{0, kProducts}}}, {"conv", {{0, kConvolutions}}}};
  profile.ramp_s = {{"matmul", kHalfSpeedSeconds}, {"conv", kHalfSpeedSeconds}};
  profile.runtime_bytes = kContextBytes;
  profile.bytes_per_kernel = kModuleBytes;
  return profile;
}

}  // namespace ridge::cuda
