#include "ridge/plan/hardware/program_memory.h"

#include <gtest/gtest.h>

namespace ridge {
namespace {

MemoryEstimate Plan() {
  MemoryEstimate plan;
  plan.peak_bytes = 1'000;
  plan.breakdown = {{"parameters", 100},  {"gradients", 10}, {"optimizer", 200},
                    {"activations", 500}, {"workspace", 40}, {"inputs", 50},
                    {"communication", 0}, {"runtime", 100}};
  return plan;
}

Software Eager() {
  Software software;
  software.memory_scale = 1.5;
  software.memory_low = 0.9;
  software.memory_high = 1.2;
  software.memory_evidence = "two trainings";
  return software;
}

TEST(ProgramMemory, ScalesWhatActivationsAndWorkspacesTake) {
  const MemoryEstimate memory = MemoryOf(Eager(), Plan());
  const std::vector<std::pair<std::string, int64_t>> wanted = {
      {"parameters", 100}, {"gradients", 100}, {"optimizer", 200},   {"activations", 750},
      {"workspace", 60},   {"inputs", 50},     {"communication", 0}, {"runtime", 100}};
  EXPECT_EQ(memory.breakdown, wanted);
}

TEST(ProgramMemory, ThePeakIsTheSumAndItsUpperEndMustFit) {
  const MemoryEstimate memory = MemoryOf(Eager(), Plan());
  EXPECT_EQ(memory.peak_bytes, 1'360);
  ASSERT_TRUE(memory.range);
  EXPECT_EQ(memory.range->low_bytes, 1'224);
  EXPECT_EQ(memory.range->high_bytes, 1'632);
  EXPECT_EQ(memory.range->evidence, "two trainings");
  EXPECT_EQ(memory.needed_bytes(), 1'632);
}

// A convolution that the library was never asked about beside values of 700 bytes.
TEST(ProgramMemory, AtTheLowerEndBoundedWorkspacesTakeNothing) {
  Program program;
  program.memory.alignment_bytes = 1;
  program.persistent_bytes = 100;
  program.bound_bytes = 1'000;
  StepPlan step;
  step.name = "train";
  step.nodes.resize(1);
  step.nodes[0].choice.workspace_bytes = 200;
  step.nodes[0].choice.is_bound = true;
  PlannedValue value;
  value.size_bytes = 700;
  value.live = {0, 0};
  step.values.push_back(value);
  program.steps.push_back(step);
  const MemoryRange range = PlannedRange(program, Plan(), /*context_spread_bytes=*/50);
  EXPECT_EQ(range.low_bytes, 1'000 - 200 - 50);
  EXPECT_EQ(range.high_bytes, 1'000) << "what must fit";
  EXPECT_EQ(range.scale, 1);
  program.steps[0].nodes[0].choice.is_bound = false;
  const MemoryRange known = PlannedRange(program, Plan(), /*context_spread_bytes=*/50);
  EXPECT_EQ(known.low_bytes, 1'000 - 50);
  EXPECT_EQ(known.evidence, "the context may take 50 B less (published ones differ so much)");
}

TEST(ProgramMemory, APlanOfRidgeNeedsItsPeak) { EXPECT_EQ(Plan().needed_bytes(), 1'000); }

}  // namespace
}  // namespace ridge
