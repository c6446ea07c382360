#include "ridge/runtime/rehearsal.h"

#include <gtest/gtest.h>

#include "ridge/lower/roofline.h"
#include "ridge/plan/cost/times.h"

namespace ridge {
namespace {

// A step of nodes that each move a megabyte: 1 ms by the profile.
class RehearsalTest : public testing::Test {
 protected:
  RehearsalTest() {
    profile_.memory = {{"DRAM", int64_t{1} << 50, 1e9}};
    program_.steps.emplace_back();
    for (const char* key : {"a", "b", "c", "d"}) {
      PlannedNode node;
      node.choice.key = key;
      node.choice.kernel = std::string("kernel.") + key;
      node.cost.bytes_read = 1'000'000;
      program_.steps[0].nodes.push_back(node);
    }
  }

  double Seconds(size_t node) const { return PlannedNodeSeconds(program_.steps[0])[node]; }
  Roofline Profiled() const { return Roofline(profile_); }

  DeviceProfile profile_;
  Program program_;
};

TEST_F(RehearsalTest, TheRatioIsTheMedianOverKeys) {
  EXPECT_EQ(RehearsedOverProfiled({}, Profiled(), program_), 1);
  EXPECT_NEAR(RehearsedOverProfiled({{"a", 1e-3}, {"b", 2e-3}, {"c", 90e-3}}, Profiled(), program_),
              2, 1e-9);
}

TEST_F(RehearsalTest, SmallKernelsDoNotSpeakForLargeOnes) {
  for (size_t small : {0, 1, 2}) program_.steps[0].nodes[small].cost.bytes_read = 100;
  EXPECT_NEAR(RehearsedOverProfiled({{"a", 1e-5}, {"b", 1e-5}, {"c", 1e-5}, {"d", 1.2e-3}},
                                    Profiled(), program_),
              1.2, 1e-9);
}

TEST_F(RehearsalTest, KernelsThatAreFarFromTheProfileContradictIt) {
  for (const double near : {0.6, 1.0, 3.0}) EXPECT_FALSE(Contradicts(near)) << near;
  for (const double far : {0.2, 5.0}) EXPECT_TRUE(Contradicts(far)) << far;
}

TEST_F(RehearsalTest, WhatWasNotTimedFollowsTheOthersWhereTheProfileIsContradicted) {
  EstimateTimesBy({{"a", 1e-4}, {"b", 1e-4}, {"c", 1e-4}}, Profiled(), program_);
  EXPECT_NEAR(Seconds(0), 1e-4, 1e-9);
  EXPECT_NEAR(Seconds(3), 1e-4, 1e-9);
}

TEST_F(RehearsalTest, OtherwiseItKeepsTheProfiles) {
  EstimateTimesBy({{"a", 0.8e-3}, {"b", 1.2e-3}, {"c", 1.1e-3}}, Profiled(), program_);
  EXPECT_NEAR(Seconds(3), 1e-3, 1e-9);
}

}  // namespace
}  // namespace ridge
