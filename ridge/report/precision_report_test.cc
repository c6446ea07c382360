#include "ridge/report/precision_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ridge/lower/test_rules.h"
#include "ridge/report/padding_report.h"

namespace ridge {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr DType kF32 = DType::kF32, kBF16 = DType::kBF16;

class Rules : public TestRules {
 public:
  ProductMultiple MultipleOfProducts() const override { return multiple; }
  std::vector<DTypeGroup> ReducedGroups(const OpDef& op) const override {
    return op.name == "slice" ? std::vector<DTypeGroup>{{{0}, {0}}} : std::vector<DTypeGroup>{};
  }
  ProductMultiple multiple = kTensorCoreMultiple;
};

PlannedNode Node(const std::string& name, const std::string& op, std::vector<TensorType> inputs,
                 TensorType output, double seconds) {
  PlannedNode node;
  node.name = name;
  node.op = op;
  node.def = FindOp(op);
  node.call = {
      op + " '" + name + "'", std::move(inputs), {std::move(output)}, node.def->attr_defaults};
  node.modelled_s = seconds;
  return node;
}

class PrecisionReportTest : public ::testing::Test {
 protected:
  PlanSummary Plan(std::vector<PlannedNode> nodes) {
    StepPlan step;
    step.name = "train";
    step.body = Region::Sequence(0, static_cast<int>(nodes.size()));
    step.nodes = std::move(nodes);
    program_.steps = {step};
    PlanSummary plan;
    plan.program = &program_;
    return plan;
  }

  Program program_;
  Rules rules_;
};

TEST_F(PrecisionReportTest, SaysWhatStaysF32AndWhy) {
  const TensorType wide{kF32, {64, 64}}, narrow{kBF16, {64, 64}}, number{kF32, {}};
  const PlanSummary plan =
      Plan({Node("y", "matmul", {narrow, narrow}, narrow, 6e-3),
            Node("w.new", "sgd_update", {wide, wide, number}, wide, 2e-3),
            Node("g", "gelu", {wide}, wide, 1e-3), Node("s", "softmax", {wide}, wide, 5e-4),
            Node("t", "slice", {wide}, wide, 4e-4),
            Node("i", "cast", {{DType::kI64, {8}}}, {DType::kI32, {8}}, 1e-4)});
  EXPECT_EQ(
      PrecisionReport(plan, kBF16, rules_, Terminal{}),
      "Precision  of the nodes of an update\n"
      "  reads or writes  nodes     time   share\n"
      "  16 bits              1  6.00 ms  60.0 %\n"
      "  f32                  4  3.90 ms  39.0 %\n"
      "  no floats            1   100 us   1.0 %\n"
      "\n"
      "  stay f32    nodes     time  why\n"
      "  sgd_update      1  2.00 ms  weights and moments stay f32: 16 bits would round small "
      "updates away\n"
      "  gelu            1  1.00 ms  its neighbours read and write f32\n"
      "  softmax         1   500 us  the device's kernels of it take f32\n"
      "  slice           1   400 us  it reads f32: weights, or outputs, which --precision-for "
      "narrows\n");
}

TEST_F(PrecisionReportTest, AShortProductIsWorthNoCasts) {
  const PlanSummary plan =
      Plan({Node("y", "matmul", {{kF32, {64, 8}}, {kF32, {8, 64}}}, {kF32, {64, 64}}, 1e-3),
            Node("z", "cast", {{kF32, {8}}}, {kBF16, {8}}, 1e-3)});
  EXPECT_THAT(PrecisionReport(plan, kBF16, rules_, Terminal{}),
              HasSubstr("fewer than 48 FLOPs an element: casts would cost more than they save\n"));
}

TEST_F(PrecisionReportTest, ARunInF32HasNoReasons) {
  const TensorType wide{kF32, {4}};
  EXPECT_EQ(
      PrecisionReport(Plan({Node("g", "gelu", {wide}, wide, 1e-3)}), kF32, rules_, Terminal{}),
      "Precision  of the nodes of an update\n"
      "  no node reads or writes 16 bits. hint: --precision bf16\n");
}

TEST_F(PrecisionReportTest, ARunIn16BitsThatNarrowsNothingSaysWhy) {
  const TensorType wide{kF32, {4}};
  EXPECT_THAT(
      PrecisionReport(Plan({Node("g", "gelu", {wide}, wide, 1e-3)}), kBF16, rules_, Terminal{}),
      AllOf(HasSubstr("\n  --precision bf16: no node reads or writes 16 bits\n\n"),
            HasSubstr("its neighbours read and write f32\n"), Not(HasSubstr("hint"))));
}

class PaddingReportTest : public PrecisionReportTest {
 protected:
  // A table [50257, 8], its copy, and the gradient of the copy cut back.
  std::vector<PlannedNode> Padded() {
    const TensorType table{kF32, {50257, 8}}, copy{kF32, {50304, 8}};
    return {Node("head.tok.padded", "pad", {table}, copy, 1e-3),
            Node("tok.grad", "slice", {copy}, table, 5e-4)};
  }
};

TEST_F(PaddingReportTest, CopiesOfClassesHaveTheirPriceAndAHint) {
  EXPECT_EQ(PaddingReport(Plan(Padded()), rules_, Terminal{}),
            "Padding  what 16-bit kernels read in place of the model's sizes\n"
            "  node             has             is read as  price of a step\n"
            "  head.tok.padded  50,257 columns      50,304  1.50 ms of copies\n"
            "  hint: a model with 50,304 columns spares the copies of 'head.tok.padded'\n");
}

TEST_F(PaddingReportTest, ImagesOfFewChannelsAreReadAsLarger) {
  PlannedNode conv = Node("conv1", "conv", {{kBF16, {32, 3, 64, 64}}, {kBF16, {64, 3, 7, 7}}},
                          {kBF16, {32, 64, 32, 32}}, 1e-3);
  conv.call.attrs["stride"] = std::vector<int64_t>{2, 2};
  conv.call.attrs["padding"] = std::vector<int64_t>{3, 3, 3, 3};
  EXPECT_EQ(PaddingReport(Plan({conv}), rules_, Terminal{}),
            "Padding  what 16-bit kernels read in place of the model's sizes\n"
            "  node   has         is read as  price of a step\n"
            "  conv1  3 channels           8  1.25 MiB more are read, in the 1.00 ms that it "
            "takes\n");
}

TEST_F(PaddingReportTest, WhereNothingIsPaddedItSaysSo) {
  const TensorType wide{kF32, {4}};
  const PlanSummary plan = Plan({Node("g", "gelu", {wide}, wide, 1e-3)});
  EXPECT_EQ(PaddingReport(plan, rules_, Terminal{}),
            "Padding  costs nothing: logits have multiples of 8 columns, images of 16-bit "
            "convolutions multiples of 8 channels\n");
  rules_.multiple = {};
  EXPECT_EQ(PaddingReport(plan, rules_, Terminal{}),
            "Padding  costs nothing: kernels of this device want no multiples\n");
}

}  // namespace
}  // namespace ridge
