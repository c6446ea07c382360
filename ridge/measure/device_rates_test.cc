#include "ridge/measure/device_rates.h"

#include <gtest/gtest.h>

#include "ridge/backend/cpu/cpu_backend.h"

namespace ridge {
namespace {

TEST(MeasureDeviceRates, ReplacesEachRateByOneThatWasMeasured) {
  const auto backend = MakeCpuBackend(/*threads=*/1);
  ASSERT_TRUE(backend.ok()) << backend.status().message();
  DeviceProfile profile;
  profile.peak_flops_per_s = {{"f32", 1}};
  profile.memory = {{"cache", 1 << 20, 1}, {"memory", int64_t{1} << 50, 1}};
  const DeviceRatesOptions quick = {
      .long_enough_s = 1e-5, .most_extent = 256, .most_sum_bytes = 8 << 20, .budget_s = 0.001};
  const Status status = MeasureDeviceRates(**backend, quick, profile);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_GT(profile.peak_flops_per_s["f32"], 1e7);
  EXPECT_GT(profile.peak_flops_per_s["f64"], 1e6);
  for (const MemoryLevel& level : profile.memory) EXPECT_GT(level.bytes_per_s, 1e6) << level.level;
  EXPECT_EQ(profile.memory[0].capacity_bytes, 1 << 20);
  EXPECT_GT(profile.launch_s, 0);
  EXPECT_LT(profile.launch_s, 0.01);
  EXPECT_EQ(profile.host_link_bytes_per_s, 0) << "the CPU's memory is the host's";
}

}  // namespace
}  // namespace ridge
