#include "ridge/lower/fuse_groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "ridge/graph/builder.h"
#include "ridge/graph/expression.h"
#include "ridge/lower/test_rules.h"

namespace ridge {
namespace {

// Several streams of pointwise nodes that meet, part and pass through softmax, which is not fused.
Graph TangledGraph(uint32_t seed, int nodes, int streams) {
  std::mt19937 random(seed);
  const auto pick = [&](size_t n) { return random() % n; };
  GraphBuilder b("tangled");
  std::vector<Value> heads;
  for (int i = 0; i < streams; ++i) heads.push_back(b.Input("x", {DType::kF32, {4}}));
  std::vector<Value> all = heads;
  for (int i = 0; i < nodes; ++i) {
    Value& head = heads[pick(heads.size())];
    const Value other = pick(4) == 0 ? all[pick(all.size())] : heads[pick(heads.size())];
    const size_t kind = pick(10);
    head = kind < 2   ? Op("softmax", {head}, {{"axis", 0}})
           : kind < 5 ? Tanh(head)
           : kind < 6 ? Where(head > other, head, all[pick(all.size())])
                      : head + other;
    all.push_back(head);
  }
  for (size_t i = 0; i < heads.size(); ++i) b.Output("out" + std::to_string(i), heads[i]);
  Result<Graph> graph = b.Build();
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return *std::move(graph);
}

// For each node the unit it is emitted with: its group, or itself.
std::vector<int> Units(const Graph& graph, const std::vector<std::vector<NodeId>>& groups) {
  std::vector<int> unit(graph.nodes().size(), -1);
  int next = 0;
  for (const auto& group : groups) {
    for (NodeId n : group) unit[static_cast<size_t>(n)] = next;
    ++next;
  }
  for (int& u : unit) u = u < 0 ? next++ : u;
  return unit;
}

// Whether the units can be put in an order: repeatedly takes those whose inputs are all there.
bool HasOrder(const Graph& graph, const std::vector<int>& unit) {
  const int count = unit.empty() ? 0 : *std::max_element(unit.begin(), unit.end()) + 1;
  std::vector<std::set<int>> needs(static_cast<size_t>(count)), feeds(static_cast<size_t>(count));
  for (size_t n = 0; n < unit.size(); ++n) {
    for (ValueId id : graph.nodes()[n].inputs) {
      const NodeId producer = graph.value(id).producer;
      if (producer < 0 || unit[static_cast<size_t>(producer)] == unit[n]) continue;
      needs[static_cast<size_t>(unit[n])].insert(unit[static_cast<size_t>(producer)]);
      feeds[static_cast<size_t>(unit[static_cast<size_t>(producer)])].insert(unit[n]);
    }
  }
  std::vector<int> ready;
  for (int u = 0; u < count; ++u) {
    if (needs[static_cast<size_t>(u)].empty()) ready.push_back(u);
  }
  int done = 0;
  for (; !ready.empty(); ++done) {
    const int u = ready.back();
    ready.pop_back();
    for (int fed : feeds[static_cast<size_t>(u)]) {
      needs[static_cast<size_t>(fed)].erase(u);
      if (needs[static_cast<size_t>(fed)].empty()) ready.push_back(fed);
    }
  }
  return done == count;
}

TEST(FusionGroups, LeaveNoCircle) {
  for (uint32_t seed = 0; seed < 400; ++seed) {
    const int streams = 1 + static_cast<int>(seed % 12);
    const Graph graph = TangledGraph(seed, 40 + static_cast<int>(seed), streams);
    ASSERT_TRUE(HasOrder(graph, Units(graph, FindFusionGroups(graph, UnlimitedRules()))))
        << "seed " << seed;
  }
}

// More streams than the masks have slots: groups are closed while others still read them.
TEST(FusionGroups, LeaveNoCircleWithMoreGroupsThanSlots) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    const Graph graph = TangledGraph(seed, 1500, 40 + static_cast<int>(seed) * 5);
    ASSERT_TRUE(HasOrder(graph, Units(graph, FindFusionGroups(graph, UnlimitedRules()))))
        << "seed " << seed;
  }
}

TEST(FusionGroups, HoldPointwiseNodesOfOneShapeEachOnce) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    const Graph graph = TangledGraph(seed, 200, 6);
    std::set<NodeId> seen;
    for (const auto& group : FindFusionGroups(graph, UnlimitedRules())) {
      EXPECT_GE(group.size(), 2u);
      EXPECT_LE(group.size(), kMostExpressionSteps);
      EXPECT_TRUE(std::is_sorted(group.begin(), group.end()));
      for (NodeId n : group) {
        EXPECT_TRUE(seen.insert(n).second);
        EXPECT_NE(graph.node(n).op->elementwise, nullptr);
      }
    }
  }
}

// A chain longer than an expression is cut into as few groups as can hold it.
TEST(FusionGroups, CutALongChain) {
  GraphBuilder b("chain");
  Value v = b.Input("x", {DType::kF32, {4}});
  for (int i = 0; i < 100; ++i) v = Tanh(v);
  b.Output("y", v);
  const auto groups = FindFusionGroups(b.graph(), UnlimitedRules());
  ASSERT_EQ(groups.size(), 4u);
  EXPECT_EQ(groups[0].size(), kMostExpressionSteps);
  EXPECT_EQ(groups[3].size(), 4u);
}

TEST(FusionGroups, KeepWithinTheInputsAndOutputsOfAnExpression) {
  GraphBuilder b("wide");
  Value sum = b.Input("x", {DType::kF32, {4}});
  for (int i = 0; i < 40; ++i) {
    sum = sum + b.Input("x", {DType::kF32, {4}});
    b.Output("sum" + std::to_string(i), sum);
  }
  for (const auto& group : FindFusionGroups(b.graph(), UnlimitedRules())) {
    EXPECT_LE(group.size(), kMostExpressionOutputs);
  }
}

TEST(FusionGroups, LeaveOutTypesThatTheirKernelDoesNotHold) {
  class NoI4 : public TestRules {
   public:
    bool GroupsPointwise(DType dtype) const override { return dtype != DType::kI4; }
  };
  GraphBuilder b("small");
  const Value small = Op("cast", {Tanh(Tanh(b.Input("x", {DType::kF32, {4}})))}, {{"to", "i4"}});
  b.Output("y", Tanh(Tanh(Op("cast", {small}, {{"to", "f32"}}))));
  const std::vector<std::vector<NodeId>> apart = {{0, 1}, {4, 5}};
  EXPECT_EQ(FindFusionGroups(b.graph(), NoI4()), apart);
  EXPECT_EQ(FindFusionGroups(b.graph(), UnlimitedRules()).size(), 1u);
}

}  // namespace
}  // namespace ridge
