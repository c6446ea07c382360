#include "ridge/train/options/schedules/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ridge {
namespace {

ScheduleOptions Options(const std::string& name, int64_t warmup = 0, int64_t total = 90) {
  return {.name = name, .lr = 0.5, .warmup_steps = warmup, .total_steps = total};
}

TEST(ScheduleTest, ConstantNeverChanges) {
  for (int64_t step : {0, 1, 89, 1000}) EXPECT_EQ(LearningRate(Options("constant"), step), 0.5);
}

TEST(ScheduleTest, StepFallsToATenthAfterEachThird) {
  EXPECT_DOUBLE_EQ(LearningRate(Options("step"), 0), 0.5);
  EXPECT_DOUBLE_EQ(LearningRate(Options("step"), 29), 0.5);
  EXPECT_DOUBLE_EQ(LearningRate(Options("step"), 30), 0.05);
  EXPECT_DOUBLE_EQ(LearningRate(Options("step"), 59), 0.05);
  EXPECT_DOUBLE_EQ(LearningRate(Options("step"), 60), 0.005);
}

// torch: CosineAnnealingLR(SGD([p], 0.5), 90) gives these at steps 0, 1, 45, 89.
TEST(ScheduleTest, CosineIsPyTorchs) {
  EXPECT_DOUBLE_EQ(LearningRate(Options("cosine"), 0), 0.5);
  EXPECT_NEAR(LearningRate(Options("cosine"), 1), 0.49984770675478745, 1e-12);
  EXPECT_NEAR(LearningRate(Options("cosine"), 45), 0.25, 1e-15);
  EXPECT_NEAR(LearningRate(Options("cosine"), 89), 0.00015229324522605227, 1e-12);
  EXPECT_EQ(LearningRate(Options("cosine"), 5000), 0);
}

TEST(ScheduleTest, RampRisesByTheSameFactorEachStep) {
  EXPECT_DOUBLE_EQ(LearningRate(Options("ramp"), 0), 0.5e-7);
  EXPECT_DOUBLE_EQ(LearningRate(Options("ramp"), 89), 0.5);
  const double factor = LearningRate(Options("ramp"), 1) / LearningRate(Options("ramp"), 0);
  EXPECT_NEAR(LearningRate(Options("ramp"), 45) / LearningRate(Options("ramp"), 44), factor, 1e-12);
  EXPECT_DOUBLE_EQ(LearningRate(Options("ramp"), 5000), 0.5);
}

TEST(ScheduleTest, WarmUpRisesEvenlyThenTheScheduleStarts) {
  const ScheduleOptions options = Options("cosine", /*warmup=*/10, /*total=*/100);
  EXPECT_DOUBLE_EQ(LearningRate(options, 0), 0.05);
  EXPECT_DOUBLE_EQ(LearningRate(options, 4), 0.25);
  EXPECT_DOUBLE_EQ(LearningRate(options, 9), 0.5);
  EXPECT_DOUBLE_EQ(LearningRate(options, 10), 0.5);
  EXPECT_NEAR(LearningRate(options, 55), 0.25, 1e-15);
}

TEST(ScheduleTest, AWarmUpLongerThanTheRunIsFine) {
  const ScheduleOptions options = Options("step", /*warmup=*/200, /*total=*/100);
  EXPECT_DOUBLE_EQ(LearningRate(options, 99), 0.25);
  EXPECT_DOUBLE_EQ(LearningRate(options, 200), 0.5);
}

TEST(ScheduleTest, WrongOptionsAreNamed) {
  EXPECT_EQ(
      CheckSchedule(Options("cosin")).message(),
      "no schedule 'cosin'; did you mean 'cosine'? (there are: constant, step, cosine, ramp)");
  ScheduleOptions options = Options("constant");
  options.lr = std::nan("");
  EXPECT_EQ(CheckSchedule(options).message(), "--lr is nan; it must be above 0 and finite");
  EXPECT_EQ(CheckSchedule(Options("constant", -1)).message(),
            "--warmup is -1; it must be 0 or more");
  EXPECT_TRUE(CheckSchedule(Options("step")).ok());
}

}  // namespace
}  // namespace ridge
