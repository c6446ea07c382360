#include "ridge/train/loop/better_deal.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ridge {
namespace {

using Slices = std::vector<int64_t>;
constexpr DealTerms kLong = {/*steps_left=*/1000000, /*start_s=*/5};

TEST(BetterDealTest, ASlowRankGetsFewerSlices) {
  EXPECT_EQ(FastestDeal({{4, 1}, {4, 3}}).slices, (Slices{6, 2}));
  EXPECT_EQ(FastestDeal({{6, 1.5}, {2, 1.5}}).slices, (Slices{6, 2}));
  EXPECT_DOUBLE_EQ(FastestDeal({{4, 1}, {4, 3}}).slowest_s, 1.5);
  // Speeds of 1, 0.37 and 0.37.
  EXPECT_EQ(FastestDeal({{1, 1}, {1, 2.7}, {30, 30 * 2.7}}).slices, (Slices{18, 7, 7}));
}

TEST(BetterDealTest, EveryRankKeepsASlice) {
  EXPECT_EQ(FastestDeal({{4, 0.001}, {2, 9}, {2, 9}}).slices, (Slices{6, 1, 1}));
}

TEST(BetterDealTest, NoDealIsSlowerThanAnyOther) {
  const std::vector<RankRate> ranks = {{3, 1.1}, {5, 4.2}, {4, 2.3}};
  const Deal deal = FastestDeal(ranks);
  for (int64_t a = 1; a <= 10; ++a) {
    for (int64_t b = 1; a + b <= 11; ++b) {
      const double slowest =
          std::max({1.1 / 3 * static_cast<double>(a), 4.2 / 5 * static_cast<double>(b),
                    2.3 / 4 * static_cast<double>(12 - a - b)});
      EXPECT_LE(deal.slowest_s, slowest + 1e-12) << a << ", " << b;
    }
  }
}

TEST(BetterDealTest, EqualRanksStayAsTheyAre) {
  EXPECT_FALSE(BetterDeal({{4, 1}, {4, 1}}, kLong));
  EXPECT_FALSE(BetterDeal({{6, 1}, {2, 1}}, kLong));
  EXPECT_FALSE(BetterDeal({{4, 1}, {4, 1.2}}, kLong));  // 5 and 3 would be slower
}

TEST(BetterDealTest, ADealMustSaveATenthOfTheStepAndTwoStarts) {
  EXPECT_FALSE(BetterDeal({{16, 1}, {16, 1.15}}, kLong));
  ASSERT_TRUE(BetterDeal({{16, 1}, {16, 1.5}}, kLong));
  EXPECT_EQ(BetterDeal({{16, 1}, {16, 1.5}}, kLong)->slices, (Slices{19, 13}));
  // It saves 0.28 s a step, and a start takes 5 s.
  EXPECT_FALSE(BetterDeal({{16, 1}, {16, 1.5}}, {/*steps_left=*/30, /*start_s=*/5}));
  EXPECT_TRUE(BetterDeal({{16, 1}, {16, 1.5}}, {/*steps_left=*/40, /*start_s=*/5}));
}

}  // namespace
}  // namespace ridge
