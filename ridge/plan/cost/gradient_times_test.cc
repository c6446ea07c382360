#include "ridge/plan/cost/gradient_times.h"

#include <gtest/gtest.h>

#include "ridge/graph/ops/shared/update_group.h"

namespace ridge {
namespace {

const TensorType kWeight = {DType::kF32, {8, 4}};

int Persistent(Program& program, const std::string& name, ValueKind kind, Purpose purpose) {
  PersistentValue value;
  value.name = name;
  value.type = kWeight;
  value.kind = kind;
  value.purpose = purpose;
  program.persistent.push_back(value);
  return static_cast<int>(program.persistent.size()) - 1;
}

int Value(StepPlan& step, int persistent = -1) {
  PlannedValue value;
  value.type = kWeight;
  value.persistent = persistent >= 0;
  value.persistent_index = persistent;
  step.values.push_back(value);
  return static_cast<int>(step.values.size()) - 1;
}

void Node(StepPlan& step, double seconds, std::vector<int> inputs, std::vector<int> outputs) {
  PlannedNode node;
  node.modelled_s = seconds;
  node.inputs = std::move(inputs);
  node.outputs = std::move(outputs);
  step.nodes.push_back(node);
}

// Two weights and their gradients.
struct TwoWeights {
  Program program;
  int a = Persistent(program, "a", ValueKind::kParameter, Purpose::kParameters);
  int b = Persistent(program, "b", ValueKind::kParameter, Purpose::kParameters);
  StepPlan step;
  int grad_b = Value(step), grad_a = Value(step);

  std::vector<GradientReady> Times() {
    step.name = "train";
    program.steps.push_back(step);
    return GradientTimes(program, 1);
  }
};

// The gradient of the second exists first, their updates come last.
TEST(GradientTimes, AGradientWaitsForTheKernelsBehindItAndNotForUpdates) {
  TwoWeights w;
  StepPlan& step = w.step;
  Node(step, 4, {Value(step, w.a), Value(step, w.b)}, {Value(step)});
  Node(step, 1, {}, {w.grad_b});
  Node(step, 2, {Value(step, w.b), w.grad_b}, {Value(step, w.b)});
  Node(step, 3, {}, {w.grad_a});
  Node(step, 2, {Value(step, w.a), w.grad_a}, {Value(step, w.a)});
  const std::vector<GradientReady> times = w.Times();
  ASSERT_EQ(times.size(), 2u);
  EXPECT_DOUBLE_EQ(times[0].ahead, 3.0 / 12);
  EXPECT_DOUBLE_EQ(times[1].ahead, 0);
  EXPECT_EQ(times[0].bytes, kWeight.bytes());
}

// Two updates in one launch: each has its gradient.
TEST(GradientTimes, AGroupOfUpdatesHasTheGradientsOfAll) {
  const OpDef& op = *FindOp("sgd_update_group");
  TwoWeights w;
  StepPlan& step = w.step;
  Node(step, 1, {}, {w.grad_b});
  Node(step, 3, {}, {w.grad_a});
  std::vector<int> inputs(GroupOf(op).shared.size(), -1);
  for (const int input : {Value(step, w.a), w.grad_a, Value(step, w.b), w.grad_b})
    inputs.push_back(input);
  Node(step, 2, inputs, {Value(step, w.a), Value(step, w.b)});
  step.nodes.back().op = op.name;
  step.nodes.back().def = &op;
  step.nodes.back().call.inputs.resize(inputs.size(), kWeight);
  const std::vector<GradientReady> times = w.Times();
  ASSERT_EQ(times.size(), 2u);
  EXPECT_DOUBLE_EQ(times[0].ahead, 3.0 / 6);
  EXPECT_DOUBLE_EQ(times[1].ahead, 0);
}

// Sums of gradients exist in the last micro-batch; a variable that nothing updates has none.
TEST(GradientTimes, WithAccumulationTheyExistInTheLastMicroBatch) {
  Program program;
  const int w = Persistent(program, "w", ValueKind::kParameter, Purpose::kParameters);
  const int frozen = Persistent(program, "frozen", ValueKind::kParameter, Purpose::kParameters);
  const int sum = Persistent(program, "w.grad_sum", ValueKind::kState, Purpose::kGradients);
  StepPlan micro, update;
  micro.name = "micro";
  update.name = "update";
  Node(micro, 1, {Value(micro, w), Value(micro, frozen)}, {Value(micro, sum)});
  Node(micro, 2, {}, {Value(micro)});
  Node(update, 1, {Value(update, w), Value(update, sum)}, {Value(update, w)});
  program.steps = {micro, update};
  const std::vector<GradientReady> times = GradientTimes(program, /*accumulate=*/3);
  ASSERT_EQ(times.size(), 1u);
  EXPECT_DOUBLE_EQ(times[0].ahead, 2.0 / 10);
}

}  // namespace
}  // namespace ridge
