// Costs for tests.
#pragma once
#include "ridge/lower/roofline.h"

namespace ridge {

// Cores of 115 GFLOP/s with two levels of cache.
inline DeviceProfile TestDevice(int threads) {
  DeviceProfile device;
  device.name = "test device";
  device.threads = threads;
  device.peak_flops_per_s = {{"f32", 115e9 * threads}, {"bf16", 230e9 * threads}};
  device.memory = {{"L2", int64_t{threads} << 20, 100e9 * threads},
                   {"L3", int64_t{16} << 20, 90e9 * threads},
                   {"DRAM", int64_t{1} << 50, 30e9}};
  device.launch_s = 1e-6;
  device.pointwise_flops_per_s = 15e9 * threads;
  device.inter_op = {1e-6, 0.3e-6, 10e9};
  return device;
}

inline const CostModel& TestCosts() {
  static const Roofline costs(TestDevice(/*threads=*/1));
  return costs;
}

}  // namespace ridge
