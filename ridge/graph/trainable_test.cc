#include "ridge/graph/trainable.h"

#include <gtest/gtest.h>

#include "ridge/graph/text.h"

namespace ridge {
namespace {

Graph Net() {
  Result<Graph> graph = ParseGraph(
      "graph net\n"
      "  x = input f32[2,3]\n"
      "  body.w = parameter f32[3,3]\n"
      "  body.b = parameter f32[3]\n"
      "  fixed = parameter f32[3] frozen=1\n"
      "  head.w = parameter f32[3,3]\n"
      "  h = matmul(x, body.w, body.b)\n"
      "  s = mul(h, fixed)\n"
      "  y = matmul(s, head.w)\n"
      "  output y\n",
      "net.ridge");
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return graph.ok() ? *graph : Graph();
}

// The frozen parameters, or the error.
std::string Frozen(const TrainablePatterns& patterns) {
  Graph graph = Net();
  const Status status = ChooseTrainable(patterns, graph);
  if (!status.ok()) return status.message();
  std::string names;
  for (const std::string& name : FrozenParameters(graph)) names += name + " ";
  return names;
}

TEST(ChooseTrainable, WithoutPatternsTheGraphDecides) { EXPECT_EQ(Frozen({}), "fixed "); }

TEST(ChooseTrainable, FreezesWhatAPatternMatches) {
  EXPECT_EQ(Frozen({.freeze = {"body.*"}, .trainable = {}}), "body.w body.b fixed ");
}

TEST(ChooseTrainable, TrainableWinsOverFreezeAndOverTheGraph) {
  EXPECT_EQ(Frozen({.freeze = {"*"}, .trainable = {"head.*", "fixed"}}), "body.w body.b ");
}

TEST(ChooseTrainable, APatternWithoutAParameterNamesTheNearest) {
  EXPECT_EQ(Frozen({.freeze = {"haed.*"}, .trainable = {}}),
            "net: --freeze 'haed.*' matches no parameter; the nearest are head.w, fixed, body.w. "
            "hint: --freeze 'head.*'");
  EXPECT_EQ(Frozen({.freeze = {"*"}, .trainable = {"fixde"}}),
            "net: --trainable 'fixde' matches no parameter; the nearest are fixed, body.w, body.b. "
            "hint: --trainable 'fixed'");
}

TEST(ChooseTrainable, OneParameterAtLeastIsTrained) {
  EXPECT_EQ(Frozen({.freeze = {"*"}, .trainable = {}}),
            "net: --freeze leaves no parameter to train. hint: --trainable 'head.w' trains the "
            "last one");
}

TEST(ChooseTrainable, AGraphWithoutParametersSaysSo) {
  Graph graph = *ParseGraph("graph none\n  x = input f32[2]\n  output x\n", "none.ridge");
  EXPECT_EQ(ChooseTrainable({.freeze = {"a"}, .trainable = {}}, graph).message(),
            "none: --freeze 'a' matches no parameter: there is none");
}

}  // namespace
}  // namespace ridge
