#include "ridge/plan/choose/ownership.h"

#include <gtest/gtest.h>

namespace ridge {
namespace {

TEST(Ownership, IsPurchaseHostAndElectricity) {
  const OwnershipTerms terms = {
      .years = 3, .use = 0.5, .pue = 1.2, .usd_kwh = 0.2, .host_usd = 2000.0};
  const Ownership cost = OwnershipOf(3600, 1000, 7200, terms);
  EXPECT_DOUBLE_EQ(cost.hours, 3 * 8760 * 0.5);
  EXPECT_DOUBLE_EQ(cost.electricity_usd, cost.hours * 1.2 * 0.2);
  EXPECT_DOUBLE_EQ(cost.usd, 3600 + 2000 + cost.electricity_usd);
  EXPECT_DOUBLE_EQ(cost.usd_hour * cost.hours, cost.usd);
  EXPECT_DOUBLE_EQ(cost.usd_training, 2 * cost.usd_hour);
}

TEST(Ownership, WhatIsUsedMoreCostsLessAnHour) {
  const double half = OwnershipOf(3600, 500, 1, {.use = 0.5}).usd_hour;
  EXPECT_LT(OwnershipOf(3600, 500, 1, {.use = 1}).usd_hour, half);
  EXPECT_LT(OwnershipOf(3600, 500, 1, {.years = 6, .use = 0.5}).usd_hour, half);
}

TEST(Ownership, AHostWithoutAPriceIsLeftOut) {
  const Ownership cost = OwnershipOf(3600, 500, 1, {});
  EXPECT_FALSE(cost.has_host);
  EXPECT_DOUBLE_EQ(cost.usd, 3600 + cost.electricity_usd);
}

// After that many hours rent has cost as much as the devices, their host and their electricity.
TEST(Ownership, PaysOffWhenRentHasCostAsMuch) {
  const OwnershipTerms terms = {.pue = 1.5, .usd_kwh = 0.2, .host_usd = 1000.0};
  const auto hours = PayOffHours(2, 5000, 1000, terms);
  ASSERT_TRUE(hours);
  EXPECT_DOUBLE_EQ(*hours * 2, 5000 + 1000 + *hours * 1.5 * 0.2);
  EXPECT_FALSE(PayOffHours(0.3, 5000, 1000, terms)) << "an hour's electricity costs as much";
}

}  // namespace
}  // namespace ridge
