#include "ridge/plan/choose/layout_cost.h"

#include <gtest/gtest.h>

#include "ridge/plan/choose/pipeline_formula.h"

namespace ridge {
namespace {

constexpr int64_t kMiB = 1 << 20;

// Blocks of 1 ms forward and 2 ms backward that save 8 MiB, of which 1 MiB goes to the next one,
// with 4 MiB of parameters.
LocalStep StepOf(size_t blocks) {
  LocalStep step;
  const auto count = static_cast<int64_t>(blocks);
  for (size_t b = 0; b < blocks; ++b)
    step.blocks.push_back({1e-3, 0, 10, 8 * kMiB, 4 * kMiB, b + 1 < blocks ? kMiB : 0});
  step.backward_s = 2e-3 * static_cast<double>(blocks);
  step.update_s = 1e-3;
  step.flops = 1'000'000 * count;
  step.parameter_bytes = step.gradient_bytes = 4 * kMiB * count;
  step.optimizer_bytes = 2 * step.parameter_bytes;
  return step;
}

class LayoutCostTest : public testing::Test {
 protected:
  LayoutCostTest() : device_(*FindHardware("a100-sxm4-80g")) {}

  LayoutCost Of(const LayoutChoice& choice, size_t blocks = 8) {
    const DeviceGroup all = {&device_, std::min<int64_t>(8, choice.devices()),
                             std::max<int64_t>(1, choice.devices() / 8), 200e9};
    const std::optional<LayoutCost> cost = ComposeLayout(StepOf(blocks), choice, all, 1);
    EXPECT_TRUE(cost.has_value());
    return cost.value_or(LayoutCost());
  }

  const Hardware device_;
};

TEST_F(LayoutCostTest, OneDeviceTakesItsStep) {
  const LayoutCost one = Of({.micro_batches = 3});
  EXPECT_NEAR(one.seconds.all(), 3 * 24e-3 + 1e-3, 1e-9);
  EXPECT_EQ(one.bytes.all(), (4 * 4 + 8) * 8 * kMiB) << "four times the parameters, what is saved";
  EXPECT_DOUBLE_EQ(one.flops, 3 * 8e6);
}

TEST_F(LayoutCostTest, StagesOfZeroKeepTheirParts) {
  const int64_t whole = 32 * kMiB;
  const struct {
    int zero;
    int64_t parameters, gradients, optimizer;
  } kStages[] = {{0, whole, whole, 2 * whole},
                 {1, whole, whole, 2 * whole / 4},
                 {2, whole, whole / 4, 2 * whole / 4},
                 {3, whole / 4, whole / 4, 2 * whole / 4}};
  for (const auto& stage : kStages) {
    const LayoutBytes bytes = Of({.data = 4, .zero = stage.zero}).bytes;
    EXPECT_EQ(bytes.parameters, stage.parameters) << stage.zero;
    EXPECT_EQ(bytes.gradients, stage.gradients) << stage.zero;
    EXPECT_EQ(bytes.optimizer, stage.optimizer) << stage.zero;
    EXPECT_EQ(bytes.gathered, stage.zero == 3 ? 8 * kMiB : 0) << "two blocks";
  }
}

TEST_F(LayoutCostTest, APipelineIsIdleForItsFormula) {
  for (const int64_t micro_batches : {1, 4, 16}) {
    const LayoutSeconds s = Of({.pipeline = 4, .micro_batches = micro_batches}).seconds;
    const double idle = s.pipeline / (s.pipeline + s.kernels);
    EXPECT_NEAR(idle, 3.0 / static_cast<double>(micro_batches + 3), 1e-12);
    EXPECT_NEAR(s.kernels, static_cast<double>(micro_batches) * 6e-3, 1e-12) << "two blocks";
  }
}

TEST_F(LayoutCostTest, TheFirstStageKeepsTheMostMicroBatches) {
  EXPECT_EQ(InFlight(4, 0, 16), 4);
  EXPECT_EQ(InFlight(4, 3, 16), 1);
  EXPECT_EQ(InFlight(4, 0, 2), 2);
  EXPECT_EQ(Of({.pipeline = 4, .micro_batches = 16}).bytes.activations, 4 * 2 * 8 * kMiB);
}

TEST_F(LayoutCostTest, MoreStagesThanBlocksAreNone) {
  const DeviceGroup all = {&device_, 8};
  EXPECT_FALSE(ComposeLayout(StepOf(4), {.pipeline = 8}, all, 1).has_value());
  EXPECT_TRUE(SplitStages(StepOf(4), 5).empty());
  EXPECT_EQ(SplitStages(StepOf(4), 4).size(), 4U);
}

TEST_F(LayoutCostTest, StagesShareUnevenBlocksByTheirSeconds) {
  LocalStep step = StepOf(6);
  step.blocks.back().forward_s = 5e-3;  // a head
  const std::vector<StageBlocks> stages = SplitStages(step, 2);
  EXPECT_EQ(stages[0].last, 5U);
  EXPECT_EQ(stages[1].first, 5U);
  EXPECT_EQ(stages[1].received_bytes, kMiB);
}

TEST_F(LayoutCostTest, RecomputingTakesAForwardPassAndKeepsLess) {
  const LayoutCost kept = Of({}), again = Of({.recompute = true});
  EXPECT_NEAR(again.seconds.all() - kept.seconds.all(), 8e-3, 1e-12);
  EXPECT_EQ(kept.bytes.activations, 8 * 8 * kMiB);
  EXPECT_EQ(again.bytes.activations, (7 + 8) * kMiB) << "seven inputs, one block";
}

TEST_F(LayoutCostTest, MoreMicroBatchesHideZeroOnesGathersNoBetterButPayThemOnce) {
  const LayoutSeconds one = Of({.data = 8, .zero = 1}).seconds,
                      four = Of({.data = 8, .zero = 1, .micro_batches = 4}).seconds;
  EXPECT_NEAR(one.data, four.data, 1e-12);
  EXPECT_GT(Of({.data = 8, .zero = 2, .micro_batches = 4}, 2).seconds.data, 0);
  EXPECT_NEAR(one.update, 1e-3 / 8, 1e-12);
}

TEST_F(LayoutCostTest, RecomputedKernelsAreLaunchedTwice) {
  EXPECT_EQ(Of({.pipeline = 2}).kernels, 40);
  EXPECT_EQ(Of({.pipeline = 2, .recompute = true}).kernels, 80);
}

TEST_F(LayoutCostTest, DataAcrossNodesTakesLongerThanWithinOne) {
  EXPECT_GT(Of({.data = 16}).seconds.data, Of({.data = 8}).seconds.data);
}

TEST_F(LayoutCostTest, NothingKeepsLessThanTheLeast) {
  const LocalStep whole = StepOf(8);
  for (const int zero : {0, 1, 2, 3}) {
    const LayoutChoice choice = {.pipeline = 2, .data = 4, .zero = zero};
    EXPECT_LE(LeastBytes(whole, choice), Of(choice).bytes.all());
  }
}

TEST(LocalStepTest, BetweenTwoStepsIsALine) {
  LocalStep a = StepOf(2), b = StepOf(2);
  b.backward_s = 3 * a.backward_s;
  b.blocks[0].saved_bytes = 3 * a.blocks[0].saved_bytes;
  const LocalStep middle = Between(a, b, 0.5), beyond = Between(a, b, 2);
  EXPECT_DOUBLE_EQ(middle.backward_s, 2 * a.backward_s);
  EXPECT_DOUBLE_EQ(beyond.backward_s, 5 * a.backward_s);
  EXPECT_EQ(middle.blocks[0].saved_bytes, 2 * a.blocks[0].saved_bytes);
  EXPECT_EQ(middle.parameter_bytes, a.parameter_bytes);
}

}  // namespace
}  // namespace ridge
