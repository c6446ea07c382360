#include "ridge/train/loop/rank_shares.h"

#include <gtest/gtest.h>

namespace ridge {
namespace {

TEST(RankSharesTest, TheRankThatSpendsLeastInCollectivesIsTheSlowest) {
  RankShares shares(3);
  EXPECT_FALSE(shares.communication());
  for (int step = 0; step < 200; ++step) shares.Add({30'000'000, 10'000'000, 20'000'000}, 0.1);
  ASSERT_TRUE(shares.communication());
  EXPECT_NEAR(*shares.communication(), 0.1, 1e-9);
  EXPECT_EQ(shares.slowest(), 1);
  EXPECT_DOUBLE_EQ(shares.communication_s(), 0.01);
}

TEST(RankSharesTest, RecentStepsCountMost) {
  RankShares shares(2);
  for (int step = 0; step < 200; ++step) shares.Add({10'000'000, 50'000'000}, 0.1);
  EXPECT_EQ(shares.slowest(), 0);
  for (int step = 0; step < 100; ++step) shares.Add({50'000'000, 20'000'000}, 0.1);
  EXPECT_EQ(shares.slowest(), 1);
}

// Of a step the last rank, who is another one each time; a rank's own mean says more.
TEST(RankSharesTest, CommunicationIsTheLastRanksOfEachStep) {
  RankShares shares(2);
  for (int step = 0; step < 100; ++step) {
    shares.Add({10'000'000, 90'000'000}, 0.1);
    shares.Add({90'000'000, 10'000'000}, 0.1);
  }
  EXPECT_DOUBLE_EQ(shares.communication_s(), 0.01);
}

TEST(RankSharesTest, OneRankSpendsNothing) {
  RankShares shares(1);
  shares.Add({0}, 0.1);
  EXPECT_FALSE(shares.communication());
}

}  // namespace
}  // namespace ridge
