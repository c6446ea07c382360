#include "ridge/plan/cost/reuse.h"

#include <gtest/gtest.h>

#include "ridge/lower/roofline.h"

namespace ridge {
namespace {

constexpr int64_t kMegabyte = 1'000'000;

// Nodes over values of some megabytes; a node's seconds are those of its bytes in the cache.
class ColdReadSecondsTest : public testing::Test {
 protected:
  ColdReadSecondsTest() {
    profile_.memory = {{"L3", 16 * kMegabyte, 10e6}, {"DRAM", int64_t{1} << 50, 1e6}};
  }

  int Value(int64_t megabytes) {
    PlannedValue value;
    value.size_bytes = megabytes * kMegabyte;
    step_.values.push_back(value);
    return static_cast<int>(step_.values.size()) - 1;
  }

  void Node(std::vector<int> inputs, std::vector<int> outputs, double compute_s = 0) {
    PlannedNode node;
    for (int v : inputs) node.cost.bytes_read += step_.values[static_cast<size_t>(v)].size_bytes;
    for (int v : outputs)
      node.cost.bytes_written += step_.values[static_cast<size_t>(v)].size_bytes;
    node.inputs = std::move(inputs);
    node.outputs = std::move(outputs);
    const auto bytes = static_cast<double>(node.cost.bytes_read + node.cost.bytes_written);
    node_s_.push_back(std::max(compute_s, bytes / 10e6));
    step_.nodes.push_back(std::move(node));
  }

  double Seconds() const {
    return ColdReadSeconds(Roofline(profile_), 10 * kMegabyte, step_, node_s_);
  }

  DeviceProfile profile_;
  StepPlan step_;
  std::vector<double> node_s_;
};

TEST_F(ColdReadSecondsTest, WhatWasTouchedShortlyBeforeIsInTheCache) {
  const int a = Value(4), b = Value(4), c = Value(1);
  Node({}, {a});
  Node({a}, {b});
  Node({a, b}, {c});
  EXPECT_EQ(Seconds(), 0);
}

TEST_F(ColdReadSecondsTest, WhatOtherBytesHaveDrivenOutComesFromMemory) {
  const int a = Value(4), b = Value(8), c = Value(1);
  Node({}, {a});
  Node({}, {b});
  Node({a}, {c});
  EXPECT_NEAR(Seconds(), 4.0 - 0.4, 1e-9);
}

TEST_F(ColdReadSecondsTest, ArithmeticHidesTheReading) {
  const int a = Value(4), b = Value(8), c = Value(1);
  Node({}, {a});
  Node({}, {b});
  Node({a}, {c}, /*compute_s=*/3.1);
  EXPECT_NEAR(Seconds(), 1.0, 1e-9);
}

TEST_F(ColdReadSecondsTest, EverySliceReadsAgain) {
  const int a = Value(4), b = Value(8), c = Value(1);
  Node({}, {a});
  Node({}, {b});
  Node({a}, {c});
  step_.body = Region::Loop(0, 3, 3);
  EXPECT_NEAR(Seconds(), 3 * (4.0 - 0.4), 1e-9);
}

TEST_F(ColdReadSecondsTest, SharedBytesAreOneOperand) {
  const int a = Value(4), b = Value(8), view = Value(4), c = Value(1);
  step_.values[static_cast<size_t>(view)].shares_with = a;
  Node({}, {a});
  Node({}, {b});
  Node({view}, {c});
  EXPECT_NEAR(Seconds(), 4.0 - 0.4, 1e-9);
}

}  // namespace
}  // namespace ridge
