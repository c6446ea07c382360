#include "ridge/train/loop/step_times.h"

#include <gtest/gtest.h>

namespace ridge {
namespace {

TEST(StepTimesTest, TheFirstTenDoNotCount) {
  StepTimes times;
  for (int i = 0; i < 10; ++i) times.Add(100);
  EXPECT_EQ(times.Median(), 100);  // there is nothing else
  times.Add(1);
  times.Add(2);
  EXPECT_EQ(times.Median(), 1.5);
  times.Add(7);
  EXPECT_EQ(times.Median(), 2);
}

TEST(StepTimesTest, AMillionStepsKeepTheirMedian) {
  StepTimes times(0);
  for (int i = 0; i < 1'000'000; ++i) times.Add(i);
  EXPECT_NEAR(times.Median(), 500'000, 1000);
  EXPECT_EQ(times.count(), 1'000'000);
}

TEST(StepTimesTest, NothingIsZero) { EXPECT_EQ(StepTimes().Median(), 0); }

}  // namespace
}  // namespace ridge
