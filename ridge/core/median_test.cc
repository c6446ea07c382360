#include "ridge/core/median.h"

#include <gtest/gtest.h>

namespace ridge {
namespace {

TEST(Median, IsTheMiddleOrTheMeanOfTwo) {
  EXPECT_EQ(Median({3}), 3);
  EXPECT_EQ(Median({9, 1, 2}), 2);
  EXPECT_EQ(Median({9, 1, 2, 4}), 3);
}

TEST(LowerQuantile, TakesTheSmallerOfTwo) {
  EXPECT_EQ(LowerQuantile({5, 1}, 0.5), 1);
  EXPECT_EQ(LowerQuantile({5, 1, 3}, 0.5), 3);
  EXPECT_EQ(LowerQuantile({4, 3, 2, 1, 0}, 0.25), 1);
  EXPECT_EQ(LowerQuantile({4, 3, 2, 1, 0}, 1), 4);
}

}  // namespace
}  // namespace ridge
