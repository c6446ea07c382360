#include "ridge/graph/gradient_reach.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ridge/graph/autodiff.h"
#include "ridge/graph/text.h"

namespace ridge {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Graph Parse(const std::string& body) {
  Result<Graph> graph = ParseGraph("graph net\n" + body, "net.ridge");
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return graph.ok() ? std::move(*graph) : Graph();
}

// enc leads to the loss through argmax alone, head as it should, idle not at all.
const char kThree[] =
    "  x = input f32[2,4]\n"
    "  enc = parameter f32[4,3]\n"
    "  head = parameter f32[2]\n"
    "  idle = parameter f32[5]\n"
    "  scores = matmul(x, enc)\n"
    "  best = argmax(scores, axis=1)\n"
    "  as_float = cast(best, to=\"f32\")\n"
    "  y = mul(as_float, head)\n"
    "  loss = reduce_sum(y)\n"
    "  output loss\n";

std::vector<std::string> Describe(const Graph& graph) {
  return DescribeGradientReach(graph, FindGradientReach(graph, graph.FindOutput("loss"),
                                                        graph.ValuesOfKind(ValueKind::kParameter)));
}

TEST(GradientReach, NamesWhatStopsTheGradientAndWhatIsNotUsed) {
  EXPECT_THAT(Describe(Parse(kThree)),
              ElementsAre("idle: not trained, the loss does not depend on it",
                          "enc: not trained, no gradient passes argmax 'best' (line 7) on the "
                          "way to the loss. hint: a loss on an output before it"));
}

TEST(GradientReach, IsSilentWhereOneWayIsOpen) {
  const Graph graph = Parse(
      "  x = input f32[2,4]\n"
      "  w = parameter f32[4,3]\n"
      "  scores = matmul(x, w)\n"
      "  best = argmax(scores, axis=1)\n"
      "  factor = cast(best, to=\"f32\")\n"
      "  row = reduce_sum(scores, axes=[1])\n"
      "  y = mul(row, factor)\n"
      "  loss = reduce_sum(y)\n"
      "  output loss\n");
  EXPECT_THAT(Describe(graph), IsEmpty());
}

TEST(Autodiff, NamesTheNodesWithoutAGradientAndWhatToFreeze) {
  GraphBuilder b(
      Parse("  a = parameter f32[2,2]\n"
            "  c = parameter f32[2,2]\n"
            "  twisted = cofactor(a)\n"
            "  y = mul(twisted, c)\n"
            "  loss = reduce_sum(y)\n"
            "  output loss\n"));
  const ValueId loss = b.graph().FindOutput("loss");
  const Result<std::vector<Value>> grads = AppendGradients(
      b, b.At(loss), {b.At(b.graph().FindValue("a")), b.At(b.graph().FindValue("c"))});
  ASSERT_FALSE(grads.ok());
  EXPECT_EQ(grads.status().message(),
            "net: no gradient for cofactor 'twisted' (line 4) on the path to the loss 'loss'. "
            "hint: freeze what is before: a");
}

}  // namespace
}  // namespace ridge
