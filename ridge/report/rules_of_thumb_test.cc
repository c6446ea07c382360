#include "ridge/report/rules_of_thumb.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ridge {
namespace {

using ::testing::HasSubstr;

// A training of `millions` parameters with Adam, whose step has one node of each bound.
class RulesOfThumbTest : public ::testing::Test {
 protected:
  PlanSummary Plan(int64_t millions, double memory_bound_s) {
    PersistentValue weights, means;
    weights.type = {DType::kF32, {millions * 1'000'000}};
    means.type = weights.type;
    means.purpose = Purpose::kOptimizer;
    program_.persistent = {weights, means};
    PlannedNode product, sum;
    product.modelled_s = 1 - memory_bound_s;
    product.bound = Bound::kCompute;
    sum.modelled_s = memory_bound_s;
    sum.bound = Bound::kMemory;
    StepPlan step;
    step.name = "train";
    step.nodes = {product, sum};
    step.body = Region::Sequence(0, 2);
    program_.steps = {step};
    PlanSummary plan;
    plan.program = &program_;
    plan.memory.peak_bytes = int64_t{30} << 30;
    plan.memory.breakdown = {{"parameters", 4 * millions << 20},
                             {"gradients", 8 << 20},
                             {"optimizer", 8 * millions << 20},
                             {"activations", 1 << 30}};
    return plan;
  }

  Program program_;
};

TEST_F(RulesOfThumbTest, CountParametersButNotWhatTheOptimizerKeeps) {
  const auto rules = RulesOfThumb(Plan(150, 0.25));
  EXPECT_EQ(rules[0].says, "2.24 GiB");
  EXPECT_THAT(rules[0].plan, HasSubstr("1.77 GiB for parameters, gradients and optimizer"));
  EXPECT_THAT(rules[0].plan, HasSubstr("1.00 GiB for activations"));
  EXPECT_EQ(rules[1].says, "286 MiB, 143 MiB");
}

TEST_F(RulesOfThumbTest, SayWhatBoundsTheStepAndWhetherACardHoldsIt) {
  const auto rules = RulesOfThumb(Plan(150, 0.25));
  EXPECT_EQ(rules[2].says, "yes");
  EXPECT_THAT(rules[2].plan, HasSubstr("25.0 % of the step"));
  EXPECT_EQ(rules[3].says, "yes");
  EXPECT_EQ(rules[3].plan, "no: needs 30.0 GiB");
}

TEST_F(RulesOfThumbTest, TheirBoundsAreThoseOfTheRules) {
  EXPECT_EQ(RulesOfThumb(Plan(9, 0.5))[4].says, "yes");
  EXPECT_EQ(RulesOfThumb(Plan(10, 0.5))[4].says, "no");
  EXPECT_EQ(RulesOfThumb(Plan(100, 0.5))[2].says, "no");
  EXPECT_EQ(RulesOfThumb(Plan(301, 0.5))[3].says, "no");
}

}  // namespace
}  // namespace ridge
