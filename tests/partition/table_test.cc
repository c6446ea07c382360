// The table of docs/design/0041-partition.md: collectives of a two-layer transformer under nine
// layouts, and steps that equal those of one device.
#include <gtest/gtest.h>

#include "ridge/learn/random_inputs.h"
#include "tests/partition/compare.h"
#include "tests/partition/nine_layouts.h"
#include "tests/partition/table_transformer.h"

namespace ridge {
namespace {

int64_t Count(const Partitioned& parts, const std::string& axis, const std::string& op) {
  for (const CollectiveSum& sum : SumCollectives(parts.collectives))
    if (sum.axis == axis && sum.op == op) return sum.count;
  return 0;
}

class Table : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const Result<Graph> forward = TableTransformer();
    ASSERT_TRUE(forward.ok()) << forward.status().message();
    Result<StepGraphs> step = TrainingStep(*forward, "sgd");
    ASSERT_TRUE(step.ok()) << step.status().message();
    graphs_ = new StepGraphs(*std::move(step));
  }
  static void TearDownTestSuite() { delete graphs_; }

  // Loss, three steps; and what is there beside the loss's own all_reduce.
  static Partitioned Checked(const NamedLayout& layout) {
    Result<Partitioned> parts = Lay(graphs_->form, layout);
    EXPECT_TRUE(parts.ok()) << parts.status().message();
    const NamedNumbers inputs = NumbersOf(RandomInputs(graphs_->whole, 1));
    EXPECT_EQ(CompareSteps(graphs_->whole, *parts, graphs_->form, inputs, 3), "") << layout.text();
    return *std::move(parts);
  }

  static StepGraphs* graphs_;
};
StepGraphs* Table::graphs_ = nullptr;

TEST_F(Table, Prints) {
  for (const NamedLayout& layout : NineLayouts())
    std::printf("%s\n%s", layout.text().c_str(), CollectiveText(Checked(layout)).c_str());
}

constexpr int64_t kWeights = 6 * kTableLayers + 1;

// One for each weight's gradient, and the loss's.
TEST_F(Table, DataParallelReducesEachGradientOnce) {
  const Partitioned parts = Checked({"d=4", ""});
  EXPECT_EQ(parts.collectives.size(), kWeights + 1);
  EXPECT_EQ(Count(parts, "d", "all_reduce"), kWeights + 1);
}

}  // namespace
}  // namespace ridge
