#include "ridge/plan/choose/scaling.h"

#include <gtest/gtest.h>

#include "ridge/plan/choose/communication.h"

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
  EXPECT_LT(point.low_s, point.step_s());
  EXPECT_GT(point.high_s, point.step_s());
}

TEST(ScalingTest, TheRangeIsThatOfThePlanOrOfEarlierRuns) {
  PlanSummary plan = Plan(32, 2.0, 0);
  plan.expected.emplace();
  plan.expected->low = 0.5, plan.expected->high = 3;
  ScalingPoint point = ScalingPointOf(plan, 1, 0);
  EXPECT_DOUBLE_EQ(point.low_s, 1.0);
  EXPECT_DOUBLE_EQ(point.high_s, 6.0);
  plan.range.emplace();
  plan.range->low_s = 1.8, plan.range->high_s = 2.2;
  point = ScalingPointOf(plan, 1, 0);
  EXPECT_DOUBLE_EQ(point.low_s, 1.8);
  EXPECT_DOUBLE_EQ(point.high_s, 2.2);
}

TEST(ScalingTest, CountsAreThePowersOfTwoAndTheMost) {
  EXPECT_EQ(DeviceCounts(1), (std::vector<int64_t>{1}));
  EXPECT_EQ(DeviceCounts(8), (std::vector<int64_t>{1, 2, 4, 8}));
  EXPECT_EQ(DeviceCounts(6), (std::vector<int64_t>{1, 2, 4, 6}));
}

TEST(ScalingTest, OneDeviceIsPlannedOnceAndNoBatchIsSmallerThanItsDevices) {
  std::vector<std::pair<int64_t, int64_t>> planned;
  const auto table = PlanScaling({"net", {1, 2, 4}, 2}, [&](int64_t devices, int64_t batch) {
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

}  // namespace
}  // namespace ridge
