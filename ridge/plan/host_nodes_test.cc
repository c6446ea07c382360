// What runs on the host, and what crosses: a table, its look-up, its gradient and update.
#include "ridge/plan/host_nodes.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "ridge/graph/builder.h"
#include "ridge/lower/test_costs.h"
#include "ridge/lower/test_kernels.h"
#include "ridge/plan/planner.h"

namespace ridge {
namespace {

class AnyKernels : public RowMajorKernels {
 public:
  KernelCandidates Candidates(const OpDef& op, const OpCall& call,
                              std::span<const LayoutId>) override {
    return {{RowMajorChoice(op, call, "any")}, {}};
  }
};

class WithHost : public AnyKernels {
 public:
  KernelQuery* host() override { return &host_; }

 private:
  AnyKernels host_;
};

class HostNodesTest : public ::testing::Test {
 protected:
  HostNodesTest() : b_("g") {
    table_ = b_.Parameter("table", kTable, Init::Zeros());
    rows_ = b_.Input("rows", {DType::kI64, {4}});
    lr_ = b_.Input("lr", {DType::kF32, {}});
  }

  // y = exp(table[rows]); table' = table - lr sum of dy at rows.
  void Train() {
    const Value x = Op("gather", {table_, rows_}, {}, "x");
    const Value y = Op("exp", {x}, {}, "y");
    b_.Output("y", y);
    const Value grad =
        Op("scatter_add", {rows_, y}, {{"dims", std::vector<int64_t>{512, 16}}}, "grad");
    b_.Update(table_,
              Op("sgd_update", {table_, Op("tanh", {grad}, {}, "clipped"), lr_}, {}, "next"));
  }

  Graph Built() {
    auto graph = b_.Build();
    EXPECT_TRUE(graph.ok()) << graph.status().message();
    return *graph;
  }

  // "host x", "y": nodes with where they run.
  std::string Planned() {
    PlanOptions options;
    options.host_parameters = {"table"};
    auto program = PlanProgram("test", {{"train", Built()}}, kernels_, TestCosts(), options);
    EXPECT_TRUE(program.ok()) << program.status().message();
    program_ = *program;
    std::string text;
    for (const PlannedNode& node : program_.steps[0].nodes)
      text += fmt::format("{}{}\n", node.on_host ? "host " : "", node.name);
    return text;
  }

  const TensorType kTable{DType::kF32, {512, 16}};
  WithHost kernels_;
  GraphBuilder b_;
  Value table_, rows_, lr_;
  Program program_;
};

TEST_F(HostNodesTest, ReadersGradientAndUpdateOfATableRunWhereItRests) {
  Train();
  EXPECT_EQ(Planned(),
            "rows@host\n"
            "host x\n"
            "x@device\n"
            "y\n"
            "y@host\n"
            "host grad\n"
            "host clipped\n"
            "lr@host\n"
            "host next\n");
}

TEST_F(HostNodesTest, WhatIsThereLiesBelowWhatIsTheDevices) {
  Train();
  (void)Planned();
  EXPECT_TRUE(program_.persistent[0].on_host);
  EXPECT_EQ(program_.persistent[0].offset_bytes, 0);
  EXPECT_EQ(program_.host_scratch_offset, kTable.bytes());
  EXPECT_EQ(program_.host_bytes % program_.memory.page_bytes, 0);
  for (const PlannedValue& value : program_.steps[0].values)
    EXPECT_EQ(value.on_host, value.offset_bytes < program_.host_bytes) << value.name;
}

TEST_F(HostNodesTest, WithoutAPlacedParameterNothingIsThere) {
  Train();
  const HostNodes found = FindHostNodes({{"train", Built()}}, {});
  EXPECT_TRUE(found.variables.empty());
  EXPECT_EQ(found.nodes, std::vector<std::vector<bool>>(1, std::vector<bool>(5, false)));
}

// A weight of the device that is kept in another layout makes the graphs be walked twice.
class WithLayouts : public WithHost {
 public:
  KernelCandidates Candidates(const OpDef& op, const OpCall& call,
                              std::span<const LayoutId> available) override {
    KernelCandidates found = WithHost::Candidates(op, call, available);
    if (op.name == "abs") found.choices[0].input_layouts[0] = kOther;
    if (op.name == "sgd_update" && available[0] == kOther) {
      KernelChoice& choice = found.choices[0];
      choice.input_layouts[0] = choice.output_layouts[0] = kOther;
    }
    return found;
  }
  KernelChoice Reorder(const TensorType&, LayoutId from, LayoutId to) override {
    KernelChoice choice;
    choice.input_layouts = {from};
    choice.output_layouts = {to};
    return choice;
  }

  static constexpr LayoutId kOther = 1;
};

TEST_F(HostNodesTest, EachNodeOfTheHostIsPricedByItsModel) {
  Train();
  const Value w = b_.Parameter("w", {DType::kF32, {64, 64}}, Init::Zeros());
  b_.Update(w, Op("sgd_update", {w, Op("abs", {w}, {}, "dw"), lr_}, {}, "w2"));
  WithLayouts kernels;
  PlanOptions options;
  options.host_parameters = {"table"};
  const auto program = PlanProgram("test", {{"train", Built()}}, kernels, TestCosts(), options);
  ASSERT_TRUE(program.ok()) << program.status().message();
  const auto weight = std::find_if(program->persistent.begin(), program->persistent.end(),
                                   [](const PersistentValue& value) { return value.name == "w"; });
  ASSERT_EQ(weight->layout, WithLayouts::kOther);
  for (const PlannedNode& node : program->steps[0].nodes)
    EXPECT_GT(node.modelled_s, 0) << node.name;
}

// The evaluation reads the table, too; a sum of gradients belongs to its update.
TEST_F(HostNodesTest, SumsAndMomentsOfATableAreWithIt) {
  const Value sum = b_.State("sum", kTable, Init::Zeros(), ValueRole::kGradient);
  const Value other = b_.State("other", kTable, Init::Zeros(), ValueRole::kNone);
  b_.Update(table_, Op("sgd_update", {table_, sum, lr_}, {}, "next"));
  b_.Update(other, Op("exp", {other}, {}, "kept"));
  Graph update = Built();
  GraphBuilder micro("m");
  const Value old = micro.State("sum", kTable, Init::Zeros(), ValueRole::kGradient);
  const Value grad = micro.Input("grad", kTable);
  micro.Update(old, Op("add", {old, Op("exp", {grad}, {}, "made")}, {}, "added"));
  auto built = micro.Build();
  ASSERT_TRUE(built.ok());
  const HostNodes found = FindHostNodes({{"micro", *built}, {"update", update}}, {"table"});
  EXPECT_EQ(found.variables, (std::set<std::string>{"sum", "table"}));
  EXPECT_EQ(found.nodes, (std::vector<std::vector<bool>>{{true, true}, {true, false}}));
}

}  // namespace
}  // namespace ridge
