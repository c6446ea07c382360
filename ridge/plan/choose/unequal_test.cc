#include "ridge/plan/choose/unequal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ridge {
namespace {

using testing::ElementsAre;

// A second for so many samples, and `fixed_s` for each slice.
UnequalMember Card(double samples_s, double fixed_s = 0, int64_t most_samples = 1 << 20) {
  UnequalMember member;
  member.device = "card";
  member.limit_bytes = most_samples;
  member.cost = [=](int64_t slices, int64_t samples) -> Result<LayoutCost> {
    LayoutCost cost;
    cost.bytes.activations = samples;
    cost.seconds.kernels =
        static_cast<double>(slices) * (fixed_s + static_cast<double>(samples) / samples_s);
    return cost;
  };
  return member;
}

TEST(DealUnequal, SharesFollowTheSpeeds) {
  const auto deal = DealUnequal({Card(300), Card(100)}, 64);
  ASSERT_TRUE(deal.ok());
  EXPECT_EQ(deal->batch(), 64);
  EXPECT_EQ(deal->dealt[0], 3 * deal->dealt[1]);
  EXPECT_DOUBLE_EQ(deal->step_s, 0.16);
  EXPECT_DOUBLE_EQ(deal->IdleSeconds(0), 0);
  const auto equal = DealEqual({Card(300), Card(100)}, 64);
  EXPECT_DOUBLE_EQ(equal->step_s, 0.32);
}

// Speeds 1 and 0.62 with 32 slices of 8: 20 and 12, 1.3 % above the ideal.
TEST(DealUnequal, NoDealIsFarFromTheIdeal) {
  const auto deal = DealUnequal({Card(1), Card(0.62)}, 256);
  EXPECT_LT(deal->step_s, 1.013 * 256 / 1.62);
  EXPECT_GE(deal->step_s, 256 / 1.62);
}

TEST(DealUnequal, SlicesAreFewWhereEachCosts) {
  EXPECT_THAT(DealUnequal({Card(100, 1), Card(100, 1)}, 64)->dealt, ElementsAre(1, 1));
  const auto fine = DealUnequal({Card(700, 1e-9), Card(100, 1e-9)}, 64);
  EXPECT_EQ(fine->slices(), 8);
}

TEST(DealUnequal, EqualSharesDifferByASliceAtMost) {
  EXPECT_THAT(DealEqual({Card(2), Card(1), Card(1)}, 60)->dealt, ElementsAre(1, 1, 1));
  EXPECT_THAT(DealEqual({Card(2), Card(1), Card(1)}, 32)->dealt, ElementsAre(11, 11, 10));
}

TEST(DealUnequal, ASliceFitsTheSmallestMemory) {
  const auto deal = DealUnequal({Card(100), Card(100, 0, 4)}, 64);
  ASSERT_TRUE(deal.ok());
  EXPECT_LE(deal->samples, 4);
  EXPECT_EQ(DealUnequal({Card(100), Card(100, 0, 0)}, 64).status().message(),
            "plan: a slice needs 1 B of card, which has 0 B. hint: --mesh auto, for layouts of "
            "equal devices");
}

TEST(DealUnequal, EachMemberHasASlice) {
  EXPECT_THAT(DealUnequal({Card(1e6), Card(1)}, 64)->dealt, testing::Each(testing::Ge(1)));
  EXPECT_EQ(DealUnequal({Card(1), Card(1), Card(1)}, 2).status().message(),
            "a batch of 2 has no equal slices for 3 devices. hint: --batch 24");
}

}  // namespace
}  // namespace ridge
