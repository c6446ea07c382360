#include <gtest/gtest.h>

#include <algorithm>

#include "ridge/graph/builder.h"
#include "ridge/lower/test_costs.h"
#include "ridge/lower/test_rules.h"
#include "ridge/plan/planner.h"

namespace ridge {
namespace {

constexpr LayoutId kBlocked = 1, kOther = 2;

// Runs nothing.  `exp` wants layout 1 and `tanh` layout 2; cast keeps what it finds; sgd_update
// takes parameters as they are, and gradients so too or, when it `gathers`, row-major; all else is
// row-major.
class LayoutKernels : public KernelQuery {
 public:
  bool gathers = true;
  int64_t padding = 0;  // bytes of layout 1

  const RewriteRules& rules() const override { return UnlimitedRules(); }
  const CostModel& nominal() const override { return TestCosts(); }
  bool Multiplies(DType) const override { return true; }
  KernelCandidates Candidates(const OpDef& op, const OpCall& call,
                              std::span<const LayoutId> available) override {
    KernelChoice choice;
    choice.kernel = choice.key = op.name;
    choice.input_layouts.assign(call.inputs.size(), kRowMajor);
    choice.output_layouts.assign(call.outputs.size(), kRowMajor);
    if (op.name == "sgd_update") choice.in_place = {{0, 0}};
    if (op.name == "exp") choice.input_layouts[0] = kBlocked;
    if (op.name == "tanh") choice.input_layouts[0] = kOther;
    if (op.name == "relu") choice.output_layouts[0] = kBlocked;
    if (op.name == "cast") choice.input_layouts[0] = choice.output_layouts[0] = available[0];
    KernelCandidates candidates = {{choice}, {}};
    if (op.name == "sgd_update" && available[0] != kRowMajor) {
      choice.input_layouts[0] = choice.output_layouts[0] = available[0];
      choice.input_layouts[1] = gathers && available[1] != available[0] ? kRowMajor : available[0];
      candidates.choices.push_back(choice);
    }
    return candidates;
  }
  KernelCandidates SerialCandidates(const OpDef&, const OpCall&,
                                    std::span<const LayoutId>) override {
    return {};
  }
  std::optional<KernelChoice> SerialReorder(const TensorType&, LayoutId, LayoutId) override {
    return std::nullopt;
  }
  int64_t LayoutBytes(LayoutId layout, const TensorType& type) const override {
    return type.bytes() + (layout == kBlocked ? padding : 0);
  }
  std::string LayoutName(LayoutId layout) const override {
    return layout == kBlocked ? "blocked" : layout == kOther ? "other" : "row_major";
  }
  KernelChoice Reorder(const TensorType&, LayoutId from, LayoutId to) override {
    KernelChoice choice;
    choice.kernel = choice.key = "reorder";
    choice.input_layouts = {from};
    choice.output_layouts = {to};
    return choice;
  }
};

class WeightLayout : public ::testing::Test {
 protected:
  WeightLayout() : b_("g") {
    w_ = b_.Parameter("w", kType, Init::Zeros());
    lr_ = b_.Input("lr", {DType::kF32, {}});
  }

  // w' = sgd_update(w, grad)
  void Update(Value grad) { b_.Update(w_, Op("sgd_update", {w_, grad, lr_}, {}, "updated")); }

  std::string Nodes(PlanOptions options = {}) { return NodesOf({"train", Built()}, options); }
  // The same with w' = sgd_update(w, the sum of `grad` over two slices, of one rank of `ranks`).
  std::string NodesOfSum(Value grad, int ranks = 1) {
    sum_ = b_.State("sum", kType, Init::Zeros(), ValueRole::kGradient);
    b_.Update(sum_, grad);
    if (norm_) b_.Output("norm", Op("abs", {sum_}, {}, "norm"));
    Update(sum_);
    NamedGraph named{"train", Built()};
    named.accumulators = {"sum"};
    named.share = SliceShare{.slices = 2, .ranks = ranks};
    named.slices = 2 / ranks;
    return NodesOf(named, {});
  }
  const PersistentValue& W() const { return program_.persistent[0]; }
  const PersistentValue& Named(const std::string& name) const {
    return *std::find_if(program_.persistent.begin(), program_.persistent.end(),
                         [&](const PersistentValue& value) { return value.name == name; });
  }

  const TensorType kType{DType::kF32, {8, 16}};
  LayoutKernels kernels_;
  GraphBuilder b_;
  Value w_, lr_, sum_;
  bool norm_ = false;  // somebody else reads the sum
  Program program_;

 private:
  Graph Built() {
    auto graph = b_.Build();
    EXPECT_TRUE(graph.ok()) << graph.status().message();
    return *graph;
  }
  std::string NodesOf(const NamedGraph& named, const PlanOptions& options) {
    auto program = PlanProgram("test", {named}, kernels_, TestCosts(), options);
    EXPECT_TRUE(program.ok()) << program.status().message();
    program_ = *program;
    std::string text;
    for (const PlannedNode& node : program_.steps[0].nodes) text += node.name + " ";
    return text;
  }
};

TEST_F(WeightLayout, AParameterLiesInTheLayoutThatItsReaderWants) {
  kernels_.padding = 64;
  Update(Op("exp", {w_}, {}, "y"));
  EXPECT_EQ(Nodes(), "y updated ");
  EXPECT_EQ(W().layout, kBlocked);
  EXPECT_EQ(W().size_bytes, kType.bytes() + 64);
  EXPECT_TRUE(program_.steps[0].values.back().persistent);  // updated in place
}

TEST_F(WeightLayout, TheOtherReaderGetsACopyFromThere) {
  const Value y = Op("exp", {w_}, {}, "y");
  Update(y + Op("tanh", {w_}, {}, "z"));
  EXPECT_EQ(Nodes(), "y w@other z add updated ");
  EXPECT_EQ(W().layout, kBlocked);
  EXPECT_EQ(program_.steps[0].nodes[1].choice.input_layouts[0], kBlocked);
}

TEST_F(WeightLayout, ACastReadsWhatTheReaderOfItsResultWants) {
  const Value wide = Op("cast", {w_}, {{"to", std::string("f64")}}, "wide");
  const Value y = Op("exp", {wide}, {}, "y");
  Update(Op("cast", {y}, {{"to", std::string("f32")}}, "grad"));
  EXPECT_EQ(Nodes(), "wide y grad updated ");
  EXPECT_EQ(W().layout, kBlocked);
}

TEST_F(WeightLayout, AGradientInTheSameLayoutIsNotCopied) {
  const Value y = Op("exp", {w_}, {}, "y");
  Update(Op("relu", {y}, {}, "grad"));
  EXPECT_EQ(Nodes(), "y grad updated ");
  EXPECT_EQ(program_.steps[0].nodes[2].choice.input_layouts[1], kBlocked);
}

// The row-major copy is what the variable `kept` holds from now on.
TEST_F(WeightLayout, AGradientThatAVariableHoldsIsStillWrittenThere) {
  const Value kept = b_.State("kept", kType, Init::Zeros(), ValueRole::kNone);
  const Value grad = Op("relu", {Op("exp", {w_}, {}, "y")}, {}, "grad");
  Update(grad);
  b_.Update(kept, grad);
  EXPECT_EQ(Nodes(), "y grad grad@row_major updated ");
  EXPECT_EQ(W().layout, kBlocked);
}

TEST_F(WeightLayout, AGradientThatCannotBeGatheredIsWorthNoCopy) {  // one copy for another
  kernels_.gathers = false;
  Update(Op("exp", {w_}, {}, "y"));
  EXPECT_EQ(Nodes(), "w@blocked y updated ");
  EXPECT_EQ(W().layout, kRowMajor);
}

TEST_F(WeightLayout, ASumOverSlicesLiesAsTheVariablesDo) {
  kernels_.padding = 64;
  EXPECT_EQ(NodesOfSum(Op("relu", {Op("exp", {w_}, {}, "y")}, {}, "grad")),
            "y grad tree_add updated ");
  EXPECT_EQ(W().layout, kBlocked);
  EXPECT_EQ(Named("sum").layout, kBlocked);
  EXPECT_EQ(Named("sum").size_bytes, kType.bytes() + 64);
  EXPECT_EQ(program_.steps[0].tree->block_bytes, kType.bytes() + 64);
}

TEST_F(WeightLayout, ASumIsExchangedInTheLayoutOfTheVariables) {
  EXPECT_EQ(NodesOfSum(Op("relu", {Op("exp", {w_}, {}, "y")}, {}, "grad"), /*ranks=*/2),
            "y grad all_reduce updated ");
  EXPECT_EQ(Named("sum").layout, kBlocked);
}

TEST_F(WeightLayout, ASumThatOthersReadStaysRowMajor) {
  norm_ = true;
  EXPECT_EQ(NodesOfSum(Op("relu", {Op("exp", {w_}, {}, "y")}, {}, "grad")),
            "y grad grad@row_major tree_add norm updated ");
  EXPECT_EQ(Named("sum").layout, kRowMajor);
}

TEST_F(WeightLayout, RowMajorReadersShareOneCopy) {
  b_.Output("a", Op("neg", {w_}, {}, "a"));
  b_.Output("b", Op("abs", {w_}, {}, "b"));
  const Value y = Op("exp", {w_}, {}, "y");
  Update(Op("relu", {y}, {}, "grad"));
  EXPECT_EQ(Nodes(), "w@row_major a b y grad updated ");
}

TEST_F(WeightLayout, WhatIsSeenUnderAnotherShapeStaysRowMajor) {
  b_.Output("flat", Mean(Reshape(w_, {128})));
  Update(Op("exp", {w_}, {}, "y"));
  Nodes();
  EXPECT_EQ(W().layout, kRowMajor);
}

TEST_F(WeightLayout, WithoutTheLayoutPassNothingIsPacked) {
  Update(Op("neg", {w_}, {}, "y"));
  PlanOptions row_major;
  row_major.layout = false;
  EXPECT_EQ(Nodes(row_major), "y updated ");
  EXPECT_EQ(W().layout, kRowMajor);
}

TEST_F(WeightLayout, TheScratchRegionHoldsARowMajorCopy) {
  Update(Op("exp", {w_}, {}, "y"));
  Nodes();
  EXPECT_GE(program_.arena_bytes - program_.persistent_bytes, kType.bytes());
}

}  // namespace
}  // namespace ridge
