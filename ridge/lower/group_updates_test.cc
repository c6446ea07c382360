// Small updates as one node: the same results, whatever reads them and wherever they stand.
#include "ridge/lower/group_updates.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "ridge/graph/ops/shared/update_group.h"
#include "ridge/graph/test_results.h"
#include "ridge/lower/test_rules.h"

namespace ridge {
namespace {

class GroupsSmallOnes : public TestRules {
 public:
  bool GroupsUpdate(const OpCall& update) const override { return IsSmallUpdate(update); }
};

Graph Grouped(const std::string& text) {
  Result<Graph> grouped = GroupUpdates(ParsedGraph(text), GroupsSmallOnes());
  EXPECT_TRUE(grouped.ok()) << grouped.status().message();
  return *std::move(grouped);
}

void ExpectSame(const std::string& text) { ExpectSameBits(ParsedGraph(text), Grouped(text)); }

void ExpectUnchanged(const std::string& text) {
  EXPECT_EQ(PrintGraph(Grouped(text)), PrintGraph(ParsedGraph(text)));
}

// How many updates each group has, in the graph's order.
std::vector<size_t> GroupSizes(const Graph& graph) {
  std::vector<size_t> sizes;
  for (const Node& node : graph.nodes()) {
    if (node.op->name.ends_with("_group"))
      sizes.push_back(GroupOf(*node.op).CountOf(graph.Call(node)));
  }
  return sizes;
}

// The gradient of b is made between the updates.
constexpr char kAdam[] = R"(graph g
  lr = input f32[]
  step = input i64[]
  x = input f32[3]
  a = parameter f32[3] init=zeros
  a.m = state f32[3] init=zeros
  a.v = state f32[3] init=zeros
  b = parameter f32[2,2] init=zeros
  b.m = state f32[2,2] init=zeros
  b.v = state f32[2,2] init=zeros
  y = input f32[2,2]
  da = exp(x)
  a2, am2, av2 = adam_update(a, da, a.m, a.v, lr, step, beta1=0.8)
  db = exp(y)
  b2, bm2, bv2 = adam_update(b, db, b.m, b.v, lr, step, beta1=0.8)
  output a2
  output b2
  update a = a2
  update a.m = am2
  update a.v = av2
  update b = b2
  update b.m = bm2
  update b.v = bv2
)";

TEST(GroupUpdates, JoinsThemAtThePlaceOfTheLast) {
  EXPECT_EQ(PrintGraph(Grouped(kAdam)), R"(graph g
  lr = input f32[]
  step = input i64[]
  x = input f32[3]
  a = parameter f32[3] init=zeros
  a.m = state f32[3] init=zeros
  a.v = state f32[3] init=zeros
  b = parameter f32[2,2] init=zeros
  b.m = state f32[2,2] init=zeros
  b.v = state f32[2,2] init=zeros
  y = input f32[2,2]
  da = exp(x)
  db = exp(y)
  a2, am2, av2, b2, bm2, bv2 = adam_update_group(lr, step, _, _, a, da, a.m, a.v, b, db, b.m, b.v, beta1=0.8)
  output a2
  output b2
  update a = a2
  update a.m = am2
  update a.v = av2
  update b = b2
  update b.m = bm2
  update b.v = bv2
)");
  ExpectSame(kAdam);
}

TEST(GroupUpdates, LeavesThemWhereTheDeviceDoes) {
  const Result<Graph> left = GroupUpdates(ParsedGraph(kAdam), UnlimitedRules());
  ASSERT_TRUE(left.ok());
  EXPECT_EQ(PrintGraph(*left), PrintGraph(ParsedGraph(kAdam)));
}

// With momentum, without, and with a scale of the gradients.
TEST(GroupUpdates, KeepsFormsApart) {
  const std::string text = R"(graph g
  lr = input f32[]
  apply = input bool[]
  scale = input f32[]
  a = input f32[3]
  b = input f32[3]
  c = input f32[3]
  d = input f32[3]
  e = input f32[3]
  a2 = sgd_update(a, d, lr)
  b2, m2 = sgd_update(b, d, lr, e, momentum=0.9)
  c2 = sgd_update(c, d, lr)
  d2, n2 = sgd_update(d, e, lr, c, momentum=0.9)
  e2 = sgd_update(e, d, lr, _, _, _, apply, scale)
  f2 = sgd_update(b, d, lr, _, _, _, apply, scale)
  output a2
  output b2
  output m2
  output c2
  output d2
  output n2
  output e2
  output f2
)";
  ExpectSame(text);
  EXPECT_EQ(GroupSizes(Grouped(text)), (std::vector<size_t>{2, 2, 2}));
}

TEST(GroupUpdates, LeavesOtherRatesLargeOnesAndOtherState) {
  ExpectUnchanged(R"(graph g
  lr = input f32[]
  other = input f32[]
  a = input f32[3]
  da = input f32[3]
  large = input f32[65537]
  dlarge = input f32[65537]
  conv = input f32[3,1,2,2]
  dconv = input f32[3,1,2,2]
  coded = input u8[3]
  absmax = input f32[1]
  a2 = sgd_update(a, da, lr)
  b2 = sgd_update(a, da, other)
  c2 = sgd_update(a, da, lr, weight_decay=0.1)
  large2 = sgd_update(large, dlarge, lr)
  conv2 = sgd_update(conv, dconv, lr)
  e2, m2, absmax2 = sgd_update(a, da, lr, coded, _, absmax, momentum=0.9)
  f2, n2, absmax3 = sgd_update(a, da, lr, coded, _, absmax, momentum=0.9)
  output a2
  output b2
  output c2
  output large2
  output conv2
  output e2
  output f2
)");
}

// What comes after a reader of a result may need what it makes.
TEST(GroupUpdates, EndsWhereAResultIsRead) {
  const std::string text = R"(graph g
  lr = input f32[]
  a = input f32[3]
  b = input f32[3]
  a2 = sgd_update(a, b, lr)
  b2 = sgd_update(b, a, lr)
  da = exp(a2)
  c2 = sgd_update(a, da, lr)
  d2 = sgd_update(b, da, lr)
  output c2
  output d2
  output b2
)";
  ExpectSame(text);
  EXPECT_EQ(GroupSizes(Grouped(text)), (std::vector<size_t>{2, 2}));
}

TEST(GroupUpdates, HasNoMoreThanALaunchTakes) {
  std::string text = "graph g\n  lr = input f32[]\n  d = input f32[3]\n", outputs;
  for (size_t i = 0; i <= kMostUpdates + 1; ++i) {
    text += fmt::format("  a{0} = input f32[3]\n  b{0} = sgd_update(a{0}, d, lr)\n", i);
    outputs += fmt::format("  output b{}\n", i);
  }
  ExpectSame(text + outputs);
  EXPECT_EQ(GroupSizes(Grouped(text + outputs)), (std::vector<size_t>{kMostUpdates, 2}));
}

}  // namespace
}  // namespace ridge
