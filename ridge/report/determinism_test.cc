#include "ridge/report/determinism.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ridge/plan/hardware/conv_workspaces.h"

namespace ridge {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMiB = int64_t{1} << 20;

PlannedNode Node(const std::string& name, const std::string& op, int64_t bytes,
                 std::optional<int64_t> first_bytes) {
  PlannedNode node;
  node.name = name;
  node.op = op;
  node.modelled_s = 1e-3;
  node.choice.key = std::string(kCudnnKey) + op + " " + name;
  node.choice.workspace_bytes = bytes;
  if (first_bytes) node.choice.answer = {"cuDNN 9.19.0", /*is_asked=*/false, *first_bytes};
  return node;
}

class DeterminismTest : public ::testing::Test {
 protected:
  std::string Report(std::vector<PlannedNode> nodes) {
    StepPlan step;
    step.name = "train";
    step.body = Region::Sequence(0, static_cast<int>(nodes.size()));
    step.nodes = std::move(nodes);
    program_.device = "h200-sxm";
    program_.steps = {step};
    PlanSummary plan;
    plan.program = &program_;
    return DeterminismReport(plan, Terminal{});
  }

  Program program_;
};

TEST_F(DeterminismTest, SaysTheBytesOfThePeakAndWhichEnginesDiffer) {
  EXPECT_EQ(Report({Node("a", "conv", 3 * kMiB, 3 * kMiB),
                    Node("b", "conv_grad_weight", 40 * kMiB, 8 * kMiB)}),
            "Determinism  what equal bits in every run cost on h200-sxm\n"
            "  memory: of 2 kernels whose engines are known 1 differ; the peak is 32.0 MiB larger "
            "for it\n"
            "  time: of 1 kernel not known: no measurement of both engines is published\n"
            "  node     op                workspace  first choice\n"
            "  train b  conv_grad_weight   40.0 MiB      8.00 MiB\n");
}

TEST_F(DeterminismTest, OfCudnnOnThisMachineNothingIsKnown) {
  PlannedNode node;
  node.op = "conv";
  node.choice.kernel = "cudnn.conv/nhwc/eng3";
  EXPECT_EQ(Report({node}),
            "Determinism  cuDNN gives deterministic kernels alone here; what they cost is known of "
            "devices that are not here. hint: --on h200-sxm\n");
}

TEST_F(DeterminismTest, AnEngineBelowThePeakCostsNoBytes) {
  EXPECT_THAT(Report({Node("a", "conv", 50 * kMiB, 50 * kMiB),
                      Node("b", "conv_grad_weight", 40 * kMiB, 8 * kMiB)}),
              HasSubstr("the peak is no larger for it"));
  EXPECT_THAT(Report({Node("b", "conv", 8 * kMiB, 40 * kMiB)}),
              HasSubstr("the peak is 32.0 MiB smaller for it"));
}

TEST_F(DeterminismTest, GradientsOfAttentionHaveAPriceWithItsSource) {
  const std::string text = Report({Node("a", "attention_grad", kMiB, std::nullopt)});
  EXPECT_THAT(text, HasSubstr("not known: what cuDNN's first choice takes for 1 kernel"));
  EXPECT_THAT(text, HasSubstr("gradients of attention 1.00 ms, of which 92.2 us to 176 us are the "
                              "price: FlashAttention's deterministic ones take 1.10"));
}

TEST_F(DeterminismTest, WhereNoLibraryChoosesItCostsNothing) {
  PlannedNode node;
  node.op = "matmul";
  EXPECT_EQ(Report({node}), "Determinism  costs nothing here: every kernel gives equal bits\n");
}

}  // namespace
}  // namespace ridge
