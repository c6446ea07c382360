#include "ridge/graph/uses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "ridge/graph/builder.h"
#include "ridge/graph/text.h"

namespace ridge {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int kGraphs = 100;

// Sums, views, nodes with two results, operands that are read twice; outputs and updates of any
// value.
Graph RandomGraph(uint32_t seed) {
  std::mt19937 random(seed);
  GraphBuilder b("random");
  const TensorType type{DType::kF32, {4}};
  const Value s = b.State("s", type, Init::Zeros(), ValueRole::kNone);
  std::vector<Value> all = {b.Input("x", type), s, b.Parameter("w", type, Init::Zeros())};
  const auto pick = [&] { return all[random() % all.size()]; };
  for (size_t n = random() % 20; n > 0; --n) {
    switch (random() % 4) {
      case 0:
        all.push_back(Op("exp", {pick()}));
        break;
      case 1:
        all.push_back(Op("reshape", {pick()}, {{"dims", {4}}}));
        break;
      case 2:
        all.push_back(Op("where", {Op("greater", {pick(), pick()}), pick(), pick()}));
        break;
      default:
        all.push_back(Op("add", {pick(), pick()}));
    }
  }
  for (size_t i = random() % 4; i > 0; --i) b.Output("y" + std::to_string(i), pick());
  if (random() % 2 == 0) b.Update(s, pick());
  return *b.Build();
}

std::vector<NodeId> Readers(const Graph& graph, ValueId id) {
  std::vector<NodeId> readers;
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    const std::vector<ValueId>& inputs = graph.nodes()[n].inputs;
    if (std::find(inputs.begin(), inputs.end(), id) != inputs.end())
      readers.push_back(static_cast<NodeId>(n));
  }
  return readers;
}

int NodeReads(const Graph& graph, ValueId id) {
  int64_t reads = 0;
  for (const Node& node : graph.nodes())
    reads += std::count(node.inputs.begin(), node.inputs.end(), id);
  return static_cast<int>(reads);
}

int ResultReads(const Graph& graph, ValueId id) {
  int reads = 0;
  for (const GraphOutput& output : graph.outputs()) reads += output.value == id ? 1 : 0;
  for (const GraphUpdate& update : graph.updates()) reads += update.value == id ? 1 : 0;
  return reads;
}

TEST(GraphUses, EqualsASearchThroughAllNodes) {
  for (uint32_t seed = 0; seed < kGraphs; ++seed) {
    const Graph graph = RandomGraph(seed);
    const GraphUses uses(graph);
    for (ValueId id = 0; id < static_cast<ValueId>(graph.values().size()); ++id) {
      const std::vector<NodeId> readers = Readers(graph, id);
      const std::span<const NodeId> found = uses.ReadersOf(id);
      EXPECT_EQ(std::vector<NodeId>(found.begin(), found.end()), readers) << seed;
      const int by_nodes = NodeReads(graph, id), by_results = ResultReads(graph, id);
      EXPECT_EQ(uses.ReadsOf(id), by_nodes + by_results) << seed;
      EXPECT_EQ(uses.IsReadOnce(id), by_nodes + by_results == 1) << seed;
      EXPECT_EQ(uses.OnlyNodesRead(id), by_results == 0) << seed;
      const bool one = by_nodes == 1 && by_results == 0;
      EXPECT_EQ(uses.OnlyReader(id), one ? readers[0] : -1) << seed;
    }
  }
}

TEST(GraphUses, ProducersListTheValuesThatTheyWrite) {
  for (uint32_t seed = 0; seed < kGraphs; ++seed) {
    const Graph graph = RandomGraph(seed);
    for (ValueId id = 0; id < static_cast<ValueId>(graph.values().size()); ++id) {
      const Node* node = graph.producer(id);
      ASSERT_EQ(node == nullptr, graph.value(id).kind != ValueKind::kResult);
      if (node == nullptr) continue;
      EXPECT_EQ(node->outputs[static_cast<size_t>(graph.value(id).output_index)], id);
      EXPECT_EQ(&graph.node(graph.IdOf(*node)), node);
      EXPECT_EQ(graph.producer(id, node->op->name), node);
      EXPECT_EQ(graph.producer(id, "conv"), nullptr);
    }
    EXPECT_EQ(graph.producer(kNoValue), nullptr);
  }
}

TEST(GraphUses, AViewHasTheRootOfItsSource) {
  for (uint32_t seed = 0; seed < kGraphs; ++seed) {
    const Graph graph = RandomGraph(seed);
    const std::vector<ValueId> roots = ViewRoots(graph);
    for (ValueId id = 0; id < static_cast<ValueId>(graph.values().size()); ++id) {
      ValueId root = id;
      while (const Node* view = graph.producer(root, "reshape")) root = view->inputs[0];
      EXPECT_EQ(roots[static_cast<size_t>(id)], root) << seed;
    }
  }
}

class ReadOnlyWithin : public testing::Test {
 protected:
  // Of y = exp(n) with n = neg(a) and a = add(x, x), and of what `more` adds.
  bool Test(const std::string& more) {
    const Graph graph =
        *ParseGraph("graph g\n  x = input f32[2]\n  a = add(x, x)\n  n = neg(a)\n  y = exp(n)\n" +
                        more + "  output y\n",
                    "g.ridge");
    const std::vector<ValueId> inner = {graph.FindValue("n"), graph.FindValue("a"),
                                        graph.FindValue("n")};
    return GraphUses(graph).AreReadOnlyWithin(inner, *graph.producer(graph.FindValue("y")));
  }
};

TEST_F(ReadOnlyWithin, HoldsForAChain) { EXPECT_TRUE(Test("")); }
TEST_F(ReadOnlyWithin, DoesNotHoldWithANodeOutside) { EXPECT_FALSE(Test("  z = tanh(a)\n")); }
TEST_F(ReadOnlyWithin, DoesNotHoldForAnOutput) { EXPECT_FALSE(Test("  output n\n")); }

TEST(GraphUses, ANodeThatReadsTwiceIsOneReaderOfTwoReads) {
  const Graph graph =
      *ParseGraph("graph g\n  x = input f32[2]\n  y = add(x, x)\n  output y\n", "g.ridge");
  const GraphUses uses(graph);
  EXPECT_THAT(uses.ReadersOf(graph.FindValue("x")), ElementsAre(0));
  EXPECT_EQ(uses.ReadsOf(graph.FindValue("x")), 2);
  EXPECT_EQ(uses.OnlyReader(graph.FindValue("x")), -1);
  EXPECT_THAT(uses.ReadersOf(graph.FindValue("y")), IsEmpty());
}

}  // namespace
}  // namespace ridge
