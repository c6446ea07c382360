#include "ridge/plan/hardware/offload.h"

#include <gtest/gtest.h>

#include <numeric>

#include "ridge/lower/roofline.h"
#include "ridge/plan/cost/times.h"

namespace ridge {
namespace {

// A step that reads w twice and updates it with its moment m; a gradient stays on the device.
Program TwoVariables() {
  Program program;
  PersistentValue w, m;
  w.name = "w";
  w.size_bytes = 1000;
  m.name = "w.m";
  m.purpose = Purpose::kOptimizer;
  m.size_bytes = 3000;
  w.on_host = m.on_host = true;
  program.persistent = {w, m};
  StepPlan step;
  step.name = "train";
  for (const int variable : {0, 1, -1, 0, 1}) {
    PlannedValue value;
    value.persistent = variable >= 0;
    value.persistent_index = variable;
    step.values.push_back(value);
  }
  PlannedNode forward, backward, update;
  forward.inputs = {0};
  backward.inputs = {0, 2, -1};
  update.inputs = {0, 1, 2};
  update.outputs = {3, 4};
  step.nodes = {forward, backward, update};
  step.body = Region{};
  program.steps = {step};
  program.persistent_bytes = program.host_bytes = 4000;
  return program;
}

TEST(Offload, EachReadAndWriteCrossesTheLink) {
  const OffloadPlan all = PlanOffload(TwoVariables(), Offload::kAll, 1, 1e3 / 0.88);
  EXPECT_EQ(all.host_bytes, 4000);
  EXPECT_EQ(all.to_device_bytes, 1000 + 1000 + 4000);
  EXPECT_EQ(all.to_host_bytes, 4000);
  EXPECT_EQ(all.window_bytes, 2 * 4000);
  EXPECT_NEAR(all.transfer_s, 6.0, 1e-9);
}

TEST(Offload, StateIsReachedInPlace) {
  Program program = TwoVariables();
  program.persistent[0].on_host = false;
  program.host_bytes = 3000;
  const OffloadPlan state = PlanOffload(program, Offload::kOptimizer, 1, 1e3 / 0.88);
  EXPECT_EQ(state.host_bytes, 3000);
  EXPECT_EQ(state.to_device_bytes, 3000);
  EXPECT_EQ(state.to_host_bytes, 3000);
  EXPECT_EQ(state.window_bytes, 0);
  EXPECT_NEAR(state.transfer_s, 3.0, 1e-9);
  EXPECT_EQ(SecondsBesideTransfers(2, state), 2);  // the kernels' seconds have them
}

TEST(Offload, AKernelIsNoFasterThanTheLink) {
  Program program = TwoVariables();
  program.persistent[0].on_host = false;
  program.host_link_bytes_per_s = 1e3 / 0.88;
  for (PlannedNode& node : program.steps[0].nodes) node.choice.kernel = "k";
  const Roofline device = Roofline(DeviceProfile());
  EstimateTimes(device, program);
  const std::vector<PlannedNode>& nodes = program.steps[0].nodes;
  EXPECT_LT(nodes[0].modelled_s, 0.1);
  EXPECT_NEAR(nodes[2].modelled_s, 3.0, 1e-9);
  EXPECT_EQ(nodes[2].bound, Bound::kMemory);
}

TEST(Offload, TheBreakdownStillAddsUpToThePeak) {
  MemoryEstimate memory;
  memory.peak_bytes = 16000;
  memory.breakdown = {{"activations", 16000}, {"communication", 0}};
  const OffloadPlan plan = PlanOffload(TwoVariables(), Offload::kAll, 1, 1e9);
  memory = WithWindows(memory, plan);
  EXPECT_EQ(memory.peak_bytes, 16000 + 8000);
  const int64_t sum =
      std::accumulate(memory.breakdown.begin(), memory.breakdown.end(), int64_t{0},
                      [](int64_t all, const auto& part) { return all + part.second; });
  EXPECT_EQ(sum, memory.peak_bytes);
}

TEST(Offload, StepsAndTransfersRunBesideEachOther) {
  OffloadPlan plan;
  plan.window_bytes = 2;
  plan.transfer_s = 6;
  plan.first_s = 0.5;
  EXPECT_EQ(SecondsBesideTransfers(2, plan), 6.5);
  EXPECT_EQ(SecondsBesideTransfers(9, plan), 9.5);
}

}  // namespace
}  // namespace ridge
