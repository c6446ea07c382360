#include "ridge/lower/kernel_rates.h"

#include <gtest/gtest.h>

#include "ridge/lower/kernel_query.h"
#include "ridge/lower/roofline.h"
#include "ridge/lower/test_costs.h"

namespace ridge {
namespace {

KernelChoice Named(const char* kernel) {
  KernelChoice choice;
  choice.kernel = kernel;
  return choice;
}

Work Product(int64_t flops) { return {CostClass::kMatmul, DType::kF32, {.flops = flops}}; }
Work Copy(int64_t bytes) { return {CostClass::kMove, DType::kF32, {.bytes_read = bytes}}; }

TEST(KernelRates, AreByFlopsWhereThereAreManyAByte) {
  const Work many = {
      CostClass::kMatmul, DType::kF32, {.flops = 40, .bytes_read = 3, .bytes_written = 2}};
  EXPECT_EQ(RatedWork(many), 40);
  EXPECT_EQ(RateKey("k", many), "k");
  const Work few = {
      CostClass::kMatmul, DType::kF32, {.flops = 39, .bytes_read = 3, .bytes_written = 2}};
  EXPECT_EQ(RatedWork(few), 5);
  EXPECT_EQ(RateKey("k", few), "k by bytes");
}

TEST(KernelRates, RunsOfOneRangeAreOnePointOfAllTheirWork) {
  const auto points = CondenseRates({{1 << 20, 1}, {1 << 20, 3}, {1 << 30, 4}});
  ASSERT_EQ(points.size(), 2U);
  EXPECT_NEAR(points[0].work, 1 << 20, 1e-3);
  EXPECT_DOUBLE_EQ(points[0].per_s, (1 << 21) / 4.0);
  EXPECT_DOUBLE_EQ(points[1].per_s, (1 << 30) / 4.0);
}

TEST(KernelRates, WhatWasTimedTakesAsLongAgain) {
  const std::vector<TimedWork> runs = {{1 << 12, 1e-5}, {1 << 18, 2e-5}, {1 << 26, 3e-3}};
  const std::map<std::string, std::vector<KernelRate>> rates = {{"k", CondenseRates(runs)}};
  for (const TimedWork& run : runs) {
    const auto flops = static_cast<int64_t>(run.work);
    EXPECT_NEAR(*RatedSeconds(rates, Product(flops), Named("k")), run.seconds, 1e-9);
  }
}

TEST(KernelRates, MoreWorkTakesLongerBetweenAndBeyondThePoints) {
  const std::map<std::string, std::vector<KernelRate>> rates = {
      {"k", CondenseRates({{1 << 12, 1e-5}, {1 << 18, 2e-5}, {1 << 26, 3e-3}})}};
  double last = 0;
  for (int64_t flops = 1; flops < int64_t{1} << 34; flops *= 2) {
    const double seconds = *RatedSeconds(rates, Product(flops), Named("k"));
    EXPECT_GT(seconds, last) << flops;
    last = seconds;
  }
}

// One copy of 8 bytes was timed: 0.2 us.  A copy of 1 MiB does not take a hundred thousand times as
// long.
TEST(KernelRates, RunsOfNanosecondsSayNothingOfLargerWork) {
  const std::map<std::string, std::vector<KernelRate>> rates = {
      {"copy by bytes", CondenseRates({{8, 0.2e-6}})}};
  EXPECT_NEAR(*RatedSeconds(rates, Copy(8), Named("copy")), 0.2e-6, 1e-12);
  EXPECT_EQ(RatedSeconds(rates, Copy(1 << 20), Named("copy")), std::nullopt);
}

TEST(KernelRates, AProfileUsesThemWhereItHasTheKernel) {
  DeviceProfile device = TestDevice(2);
  device.kernel_rates["timed by bytes"] = {{1 << 20, 1e9}};
  const Roofline with(device), without(TestDevice(2));
  EXPECT_DOUBLE_EQ(with.Seconds(Copy(1 << 20), Named("timed")), (1 << 20) / 1e9);
  EXPECT_EQ(with.Seconds(Copy(1 << 20), Named("other")),
            without.Seconds(Copy(1 << 20), Named("other")));
  KernelChoice alone = Named("timed");
  alone.one_thread = true;
  EXPECT_EQ(with.Seconds(Copy(1 << 20), alone), without.Seconds(Copy(1 << 20), alone));
  EXPECT_EQ(with.Seconds(Copy(0), Named("timed")), without.Seconds(Copy(0), Named("timed")));
}

TEST(KernelRates, AreKeptInTheProfilesFile) {
  DeviceProfile device = TestDevice(2);
  device.kernel_rates["a"] = {{1024, 2.5e9}, {4096, 3e9}};
  const auto read = ProfileFromJson(ProfileToJson(device), "file");
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_EQ(read->kernel_rates.at("a").size(), 2U);
  EXPECT_EQ(read->kernel_rates.at("a")[1].work, 4096);
  EXPECT_EQ(read->kernel_rates.at("a")[1].per_s, 3e9);
}

}  // namespace
}  // namespace ridge
