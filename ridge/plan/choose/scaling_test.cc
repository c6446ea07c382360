#include "ridge/plan/choose/scaling.h"

#include <gtest/gtest.h>

#include "ridge/plan/choose/communication.h"
#include "ridge/plan/hardware/hardware.h"

namespace ridge {
namespace {

PlanSummary Plan(int64_t batch, double step_s, double exposed_s) {
  PlanSummary plan;
  plan.batch = batch;
  plan.step_s = step_s;
  if (exposed_s > 0) plan.communication = PlanCommunication{exposed_s, exposed_s, "measured"};
  return plan;
}

TEST(ScalingTest, AStepIsTheSumOfItsTerms) {
  const ScalingPoint point = ScalingPointOf(Plan(32, 1.2, 0.2), 4, 0.1);
  EXPECT_DOUBLE_EQ(point.compute_s, 1.0);
  EXPECT_DOUBLE_EQ(point.communication_s, 0.2);
  EXPECT_DOUBLE_EQ(point.stragglers_s, StragglerFactor(4) - 1);
  EXPECT_DOUBLE_EQ(point.step_s(), 1.3 + point.stragglers_s);
  EXPECT_DOUBLE_EQ(point.samples_s(), 32 / point.step_s());
  EXPECT_LT(point.low_s(), point.step_s());
  EXPECT_GT(point.high_s(), point.step_s());
}

TEST(ScalingTest, TheRangeIsThatOfThePlanOrOfEarlierRuns) {
  PlanSummary plan = Plan(32, 2.0, 0);
  plan.expected.emplace();
  plan.expected->low = 0.5, plan.expected->high = 3;
  ScalingPoint point = ScalingPointOf(plan, 1, 0);
  EXPECT_DOUBLE_EQ(point.low_s(), 1.0);
  EXPECT_DOUBLE_EQ(point.high_s(), 6.0);
  plan.range.emplace();
  plan.range->low_s = 1.8, plan.range->high_s = 2.2;
  point = ScalingPointOf(plan, 1, 0);
  EXPECT_DOUBLE_EQ(point.low_s(), 1.8);
  EXPECT_DOUBLE_EQ(point.high_s(), 2.2);
}

TEST(ScalingTest, CountsAreThePowersOfTwoAndTheMost) {
  EXPECT_EQ(DeviceCounts(1), (std::vector<int64_t>{1}));
  EXPECT_EQ(DeviceCounts(8), (std::vector<int64_t>{1, 2, 4, 8}));
  EXPECT_EQ(DeviceCounts(6), (std::vector<int64_t>{1, 2, 4, 6}));
}

TEST(ScalingTest, OneDeviceIsPlannedOnceAndNoBatchIsSmallerThanItsDevices) {
  std::vector<std::pair<int64_t, int64_t>> planned;
  const auto table = PlanScaling({"net on x", "x", {1, 2, 4}, 2}, [&](int64_t devices,
                                                                      int64_t batch) {
    planned.emplace_back(devices, batch);
    return Result<ScalingPoint>(ScalingPoint{.devices = devices, .batch = batch, .compute_s = 1});
  });
  ASSERT_TRUE(table.ok());
  EXPECT_EQ(planned, (std::vector<std::pair<int64_t, int64_t>>{{1, 2}, {2, 2}, {2, 4}, {4, 8}}));
  EXPECT_EQ(table->strong.size(), 2u);
  EXPECT_EQ(table->weak.size(), 3u);
  EXPECT_DOUBLE_EQ(LinearShare(table->weak[2], table->weak[0]), 1.0);
  EXPECT_DOUBLE_EQ(LinearShare(table->strong[1], table->strong[0]), 0.5);
}

ScalingPoint Point(int64_t devices, double compute_s, double communication_s) {
  ScalingPoint point = {.devices = devices, .batch = 64};
  point.compute_s = compute_s;
  point.communication_s = communication_s;
  point.slow_communication_s = 2 * communication_s;
  point.band = {0.8, 1.5};
  return point;
}

// What is wrong about kernels is wrong on both, so it cancels but for what the sums weigh.
TEST(ScalingTest, KernelsErrAlikeOnBothSidesOfASpeedUp) {
  const SpeedUp same = SpeedUpOf(Point(2, 0.5, 0), Point(1, 1, 0));
  EXPECT_DOUBLE_EQ(same.times, 2);
  EXPECT_DOUBLE_EQ(same.low, 2);
  EXPECT_DOUBLE_EQ(same.high, 2);
  const SpeedUp up = SpeedUpOf(Point(2, 0.5, 0.1), Point(1, 1, 0));
  EXPECT_DOUBLE_EQ(up.times, 1 / 0.6);
  EXPECT_DOUBLE_EQ(up.low, 0.8 / (0.4 + 0.2));
  EXPECT_DOUBLE_EQ(up.high, 1.5 / (0.75 + 0.1));
}

TEST(ScalingTest, WhatDoesNotFitIsNotComparedWith) {
  ScalingPoint small = {.devices = 1, .batch = 64};
  small.peak_bytes = 2, small.limit_bytes = 1;
  const std::vector<ScalingPoint> points = {small, Point(2, 1, 0), Point(4, 0.5, 0)};
  EXPECT_EQ(FirstFitting(points), &points[1]);
  EXPECT_DOUBLE_EQ(LinearShare(points[2], points[1]), 1);
  EXPECT_EQ(FirstFitting({small}), nullptr);
}

// One block whose gradients are summed while nothing else runs, by devices without a link.
TEST(ScalingTest, TheTermsOfALayoutAreThoseOfItsStep) {
  LocalStep step;
  step.blocks = {{.forward_s = 1, .parameter_bytes = 400}};
  step.backward_s = 2, step.update_s = 0.5, step.parameter_bytes = 400;
  const Hardware& hardware = HardwareCatalog().front();
  const DeviceGroup one = {&hardware};
  const std::optional<LayoutCost> cost = ComposeLayout(step, {.samples = 8}, one, 1);
  ASSERT_TRUE(cost);
  const ScalingPoint point = ScalingPointOf(*cost, step, one, 1, {0.9, 1.2}, 1 << 30);
  EXPECT_DOUBLE_EQ(point.compute_s, 3.5);
  EXPECT_DOUBLE_EQ(point.step_s(), cost->seconds.all());
  EXPECT_DOUBLE_EQ(point.low_s(), 0.9 * 3.5);
  EXPECT_DOUBLE_EQ(point.high_s(), 1.2 * 3.5);
  EXPECT_EQ(point.batch, 8);
}

}  // namespace
}  // namespace ridge
