#include "ridge/plan/choose/communication.h"

#include <gtest/gtest.h>

namespace ridge {
namespace {

constexpr int64_t kMiB = 1 << 20;

Hardware Device(const std::string& id) {
  Result<Hardware> found = FindHardware(id);
  EXPECT_TRUE(found.ok()) << found.status().message();
  return std::move(*found);
}

// Sixteen gradients of `bytes` together that exist one after the other over two thirds of a step.
std::vector<GradientReady> EvenGradients(int64_t bytes) {
  std::vector<GradientReady> gradients;
  for (int g = 1; g <= 16; ++g) gradients.push_back({2.0 / 3 * (16 - g) / 16, bytes / 16});
  return gradients;
}

double Exposed(const DeviceGroup& group, int64_t bytes, double step_s) {
  return SumGradients(group, EvenGradients(bytes), step_s).exposed_s;
}

TEST(CommunicationTest, GradientsWaitLessOnAFasterLinkAndBehindALongerStep) {
  const Hardware bridged = Device("rtx3090"), nvlink = Device("h100-sxm");
  const int64_t bytes = 4096 * kMiB;
  EXPECT_LT(Exposed({&nvlink, 8}, bytes, 0.01), Exposed({&bridged, 8}, bytes, 0.01));
  EXPECT_LT(Exposed({&bridged, 2}, bytes, 0.01), Exposed({&bridged, 4}, bytes, 0.01));
  EXPECT_LT(Exposed({&bridged, 4}, bytes, 1), Exposed({&bridged, 4}, bytes, 0.01));
  EXPECT_EQ(Exposed({&bridged, 1}, bytes, 0.01), 0);
}

// The last one exists when the kernels end.
TEST(CommunicationTest, TheLastBucketHasNothingBesideIt) {
  const Hardware card = Device("rtx3090");
  const DeviceGroup two = {&card, 2};
  const double last_s = *AllReduceSeconds(two, 256.0 * kMiB);
  EXPECT_DOUBLE_EQ(Exposed(two, 16 * 256 * kMiB, 1e9), last_s);
}

// Without time to hide behind all sums wait for each other, as on one link.
TEST(CommunicationTest, ALinkTakesOneSumAfterTheOther) {
  const Hardware card = Device("rtx3090");
  const DeviceGroup two = {&card, 2};
  const Communication sums = SumGradients(two, EvenGradients(1024 * kMiB), 1e-9);
  EXPECT_NEAR(sums.exposed_s, sums.busy_s, 1e-8);
  EXPECT_NEAR(sums.busy_s, 16 * *AllReduceSeconds(two, 64.0 * kMiB), 1e-9);
}

// Small gradients share a sum: 16 of 1 MiB are one bucket, 16 of 16 MiB are eight.
TEST(CommunicationTest, GradientsLeaveInBuckets) {
  const Hardware card = Device("rtx3090");
  const DeviceGroup two = {&card, 2};
  EXPECT_DOUBLE_EQ(SumGradients(two, EvenGradients(16 * kMiB), 1).busy_s,
                   *AllReduceSeconds(two, 16.0 * kMiB));
  EXPECT_NEAR(SumGradients(two, EvenGradients(256 * kMiB), 1).busy_s,
              8 * *AllReduceSeconds(two, 32.0 * kMiB), 1e-12);
}

// A sum beside kernels is slower than one alone, so hidden sums may still delay those behind them.
TEST(CommunicationTest, SumsBesideKernelsAreSlower) {
  const Hardware card = Device("rtx3090");
  const DeviceGroup two = {&card, 2};
  const int64_t bytes = 512 * kMiB;
  const double alone_s = *AllReduceSeconds(two, static_cast<double>(bytes));
  const std::vector<GradientReady> early = {{1, bytes}};
  EXPECT_NEAR(SumGradients(two, early, alone_s).exposed_s, alone_s * (1 - 1 / 1.34), 1e-9);
  EXPECT_EQ(SumGradients(two, early, 1.35 * alone_s).exposed_s, 0);
}

TEST(CommunicationTest, ManyDevicesWaitForTheSlowestAndForFailures) {
  EXPECT_EQ(StragglerFactor(1), 1);
  EXPECT_NEAR(StragglerFactor(1024), 1.037, 0.001);
  EXPECT_EQ(LostShare(1), 0);
  EXPECT_NEAR(LostShare(16384), 0.162, 0.001);
  EXPECT_LT(LostShare(1 << 30), 1);
}

}  // namespace
}  // namespace ridge
