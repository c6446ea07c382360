#include "ridge/plan/hardware/software.h"

#include <gtest/gtest.h>

#include <set>

namespace ridge {
namespace {

TEST(SoftwareTest, EachProgramAndPrecisionHasOneRowWhoseRangeHoldsItsStep) {
  std::set<std::pair<std::string, std::string>> seen;
  for (const Software& row : SoftwareCatalog()) {
    EXPECT_TRUE(seen.insert({row.id, row.precision}).second) << row.id << " " << row.precision;
    EXPECT_GT(row.scale, 0.25) << row.id;
    EXPECT_LT(row.scale, 4) << row.id;
    EXPECT_LE(row.low, 1) << row.id;
    EXPECT_GE(row.high, 1) << row.id;
    EXPECT_LT(row.low, row.high) << row.id;
    EXPECT_FALSE(row.name.empty());
    EXPECT_FALSE(row.evidence.empty()) << row.id;
  }
}

TEST(SoftwareTest, RidgeItselfHasEveryPrecision) {
  for (const char* precision : {"f32", "tf32", "f16", "bf16", "fp8"}) {
    const Result<Software> ridge = FindSoftware(kOwnSoftware, precision);
    ASSERT_TRUE(ridge.ok()) << ridge.status().message();
    EXPECT_FALSE(ridge->eager);
    if (ridge->precision == "f16") continue;
    EXPECT_EQ(ridge->scale, 1) << "nothing was measured of it that could scale it";
  }
}

TEST(SoftwareTest, UnknownProgramsAndPrecisionsAreNamed) {
  EXPECT_EQ(FindSoftware("torhc", "f32").status().message(),
            "nothing is known of 'torhc'; did you mean 'torch'? hint: known are ridge, torch, "
            "torch-channels-last, tf");
  EXPECT_EQ(FindSoftware("mxnet", "f32").status().message(),
            "nothing is known of 'mxnet'. hint: known are ridge, torch, torch-channels-last, tf");
  EXPECT_EQ(FindSoftware("tf", "tf32").status().message(),
            "no published trainings of tf in tf32 are known, only in f32, f16. hint: --precision "
            "f32");
}

}  // namespace
}  // namespace ridge
