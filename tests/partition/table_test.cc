// The table of docs/design/0041-partition.md: collectives of a two-layer transformer under nine
// layouts, and steps that equal those of one device.
#include <gtest/gtest.h>

#include "ridge/learn/random_inputs.h"
#include "tests/partition/compare.h"
#include "tests/partition/nine_layouts.h"
#include "tests/partition/table_transformer.h"

namespace ridge {
namespace {

constexpr int64_t kWeights = 6 * kTableLayers + 1;
// All but query, key and value of the first layer, below which no gradient goes.
constexpr int64_t kReadBackward = kWeights - 3;
constexpr int64_t kOutputs = 2;  // loss and correct, each reduced over the samples' devices

struct Counts {
  int64_t all_reduce = 0, reduce_scatter = 0, all_gather = 0, all_to_all = 0;
  bool operator==(const Counts&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Counts& c) {
  return out << c.all_reduce << " all_reduce, " << c.reduce_scatter << " reduce_scatter, "
             << c.all_gather << " all_gather, " << c.all_to_all << " all_to_all";
}

Counts Count(const Partitioned& parts, const std::string& axis) {
  Counts counts;
  for (const MeshCollective& c : parts.collectives) {
    if (c.axis != axis) continue;
    if (c.op == "all_reduce") ++counts.all_reduce;
    if (c.op == "reduce_scatter") ++counts.reduce_scatter;
    if (c.op == "all_gather") ++counts.all_gather;
    if (c.op == "all_to_all") ++counts.all_to_all;
  }
  return counts;
}

class Table : public testing::Test {
 protected:
  // After three steps that equal those of one device.
  static Partitioned Checked(const NamedLayout& layout, bool positions = false) {
    const Result<Graph> forward = TableTransformer(positions);
    EXPECT_TRUE(forward.ok()) << forward.status().message();
    const Result<StepGraphs> step = TrainingStep(*forward, "sgd");
    EXPECT_TRUE(step.ok()) << step.status().message();
    Result<Partitioned> parts = Lay(step->form, layout);
    EXPECT_TRUE(parts.ok()) << parts.status().message();
    const NamedNumbers inputs = NumbersOf(RandomInputs(step->whole, 1));
    EXPECT_EQ(CompareSteps(step->whole, *parts, step->form, inputs, 3), "") << layout.text();
    EXPECT_LE(parts->rounds, 3) << layout.text();
    return *std::move(parts);
  }
};

TEST_F(Table, DataParallelReducesEachGradientOnce) {
  EXPECT_EQ(Count(Checked({"d=4", ""}), "d"), (Counts{.all_reduce = kWeights + kOutputs}));
}

TEST_F(Table, ZeroScattersGradientsAndGathersWeights) {
  const Counts counts{.all_reduce = kOutputs, .reduce_scatter = kWeights, .all_gather = kWeights};
  for (const char* stage : {"zero1", "zero2"})
    EXPECT_EQ(Count(Checked({"d=2", stage}), "d"), counts) << stage;
}

// Between the passes no device has what it stores a part of.
TEST_F(Table, TheThirdStageGathersWeightsAgainForTheBackwardPass) {
  EXPECT_EQ(Count(Checked({"d=2", "zero3"}), "d"),
            (Counts{.all_reduce = kOutputs,
                    .reduce_scatter = kWeights,
                    .all_gather = kWeights + kReadBackward}));
}

// Two forward, two backward; no gradient goes below the first norm of a graph without weights
// there.
TEST_F(Table, TensorParallelReducesFourTimesALayer) {
  for (const char* mesh : {"t=2", "t=4"}) {
    EXPECT_EQ(Count(Checked({mesh, ""}), "t"), (Counts{.all_reduce = 4 * kTableLayers - 1}))
        << mesh;
    EXPECT_EQ(Count(Checked({mesh, ""}, /*positions=*/true), "t"),
              (Counts{.all_reduce = 4 * kTableLayers}))
        << mesh;
  }
}

// The same elements in two halves; the head's weight, which all tokens share, is reduced.
TEST_F(Table, SequenceParallelScattersAndGathersInstead) {
  EXPECT_EQ(Count(Checked({"t=2", "sequence"}), "t"),
            (Counts{.all_reduce = 1 + kOutputs, .reduce_scatter = 7, .all_gather = 8}));
  // The gradient of positions lies as the tokens do, and is gathered.
  EXPECT_EQ(Count(Checked({"t=2", "sequence"}, /*positions=*/true), "t"),
            (Counts{.all_reduce = 1 + kOutputs, .reduce_scatter = 8, .all_gather = 8 + 1}));
}

TEST_F(Table, ProductsHaveTheCollectivesOfBoth) {
  const Partitioned both = Checked({"d=2,t=2", ""});
  EXPECT_EQ(Count(both, "t"), (Counts{.all_reduce = 7}));
  EXPECT_EQ(Count(both, "d"), (Counts{.all_reduce = kWeights + kOutputs}));
  const Partitioned sequence = Checked({"d=2,t=2", "sequence"});
  EXPECT_EQ(Count(sequence, "t"),
            (Counts{.all_reduce = 1 + kOutputs, .reduce_scatter = 7, .all_gather = 7}));
  EXPECT_EQ(Count(sequence, "d"), (Counts{.all_reduce = kWeights + kOutputs}));
  const Partitioned all = Checked({"d=2,t=2", "zero3,sequence"});
  EXPECT_EQ(Count(all, "t"), Count(sequence, "t"));
  EXPECT_EQ(Count(all, "d"), (Counts{.all_reduce = kOutputs,
                                     .reduce_scatter = kWeights,
                                     .all_gather = kWeights + kReadBackward}));
}

// ---- what the prototype of the table got wrong, with right numbers

Result<StepGraphs> TableStep() {
  RIDGE_ASSIGN_OR_RETURN(const Graph forward, TableTransformer());
  return TrainingStep(forward, "sgd");
}

// How variables are stored does not spread to activations by their updates.
TEST_F(Table, StoredPartsStayOutOfActivations) {
  const Result<StepGraphs> step = TableStep();
  ASSERT_TRUE(step.ok()) << step.status().message();
  const Result<Partitioned> plain = Lay(step->form, {"d=2", ""});
  for (const char* stage : {"zero1", "zero3"}) {
    const Result<Partitioned> stored = Lay(step->form, {"d=2", stage});
    for (const MeshCollective& c : stored->collectives) EXPECT_NE(c.op, "all_to_all") << c.value;
    const ValueId loss = step->form.FindOutput("loss");
    for (ValueId v = 0; v <= loss; ++v) {
      if (step->form.value(v).kind != ValueKind::kResult) continue;
      EXPECT_EQ(stored->splits[static_cast<size_t>(v)], plain->splits[static_cast<size_t>(v)])
          << stage << " " << step->form.value(v).name;
    }
  }
}

// Tokens are cut between the pairs; inside them a weight's claim to the axis comes first.
TEST_F(Table, SequenceLeavesAttentionToHeads) {
  const Result<StepGraphs> step = TableStep();
  ASSERT_TRUE(step.ok()) << step.status().message();
  const Result<Partitioned> parts = Lay(step->form, {"t=2", "sequence"});
  int seen = 0;
  for (const Node& node : step->form.nodes()) {
    if (node.op->name != "attention" && node.op->name != "attention_grad") continue;
    const Split& heads = parts->splits[static_cast<size_t>(node.outputs[0])];
    EXPECT_EQ(SplitText(heads, 4, parts->mesh), "[-,t,-,-]") << node.op->name;
    ++seen;
  }
  EXPECT_EQ(seen, 2 * kTableLayers);
}

}  // namespace
}  // namespace ridge
