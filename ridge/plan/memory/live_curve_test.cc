// The laws: the peak is the largest sum, at its first step; what is added can be taken away.
#include "ridge/plan/memory/live_curve.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace ridge {
namespace {

TEST(LiveCurveTest, NamesTheFirstOfEqualPeaks) {
  LiveCurve curve(5);
  curve.Add(1, 3, 10);
  EXPECT_EQ(curve.peak_bytes(), 10);
  EXPECT_EQ(curve.peak_step(), 1);
  curve.Add(3, 4, 5);
  EXPECT_EQ(curve.peak_bytes(), 15);
  EXPECT_EQ(curve.peak_step(), 3);
  curve.Add(3, 3, -15);
  EXPECT_EQ(curve.peak_step(), 1);
}

TEST(LiveCurveTest, LeavesOutWhatLiesBeyondTheSteps) {
  LiveCurve curve(2);
  curve.Add(1, 0, 7);
  EXPECT_EQ(curve.peak_bytes(), 0);
  curve.Add(1, 9, 7);
  EXPECT_EQ(curve.peak_step(), 1);
}

TEST(LiveCurveTest, IsTheSumOfItsRanges) {
  std::mt19937 draw(3);
  for (const int steps : {1, 2, 3, 7, 16, 61}) {
    LiveCurve curve(steps);
    std::vector<int64_t> sums(static_cast<size_t>(steps), 0);
    for (int i = 0; i < 60; ++i) {
      const auto pick = [&] { return static_cast<int>(draw() % static_cast<unsigned>(steps)); };
      const int from = pick(), to = pick();
      const auto bytes = static_cast<int64_t>(draw() % 100) - 40;
      curve.Add(from, to, bytes);
      for (int at = from; at <= to; ++at) sums[static_cast<size_t>(at)] += bytes;
      const auto most = std::max_element(sums.begin(), sums.end());
      ASSERT_EQ(curve.peak_bytes(), *most);
      ASSERT_EQ(curve.peak_step(), most - sums.begin());
    }
  }
}

}  // namespace
}  // namespace ridge
