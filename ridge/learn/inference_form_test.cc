// Running statistics that several nodes share: a module that is called twice.
#include "ridge/learn/inference_form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ridge/graph/text.h"

namespace ridge {
namespace {

// Two batch norms; `mean` is updated from `first`, then from `second`.
Result<Graph> TwoNorms(const std::string& first, const std::string& second) {
  return ParseGraph(
      "graph net\n"
      "  x = input f32[4,2]\n"
      "  scale = parameter f32[2] init=constant(1)\n"
      "  shift = parameter f32[2] init=zeros\n"
      "  mean = state f32[2] init=zeros\n"
      "  var = state f32[2] init=constant(1)\n"
      "  a, a.mean, a.var = batch_norm(x, scale, shift)\n"
      "  b, b.mean, b.var = batch_norm(a, scale, shift)\n"
      "  m1 = add(mean, " +
          first +
          ")\n"
          "  m2 = add(m1, " +
          second +
          ")\n"
          "  v1 = add(var, a.var)\n"
          "  v2 = add(v1, b.var)\n"
          "  output b\n"
          "  update mean = m2\n"
          "  update var = v2\n",
      "net.ridge");
}

TEST(InferenceForm, NodesThatShareARunningStatisticBothUseIt) {
  const Result<Graph> graph = TwoNorms("a.mean", "b.mean");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const Result<Graph> infer = InferenceForm(*graph);
  ASSERT_TRUE(infer.ok()) << infer.status().message();
  int norms = 0;
  for (const Node& node : infer->nodes()) {
    ASSERT_EQ(node.op->name, "batch_norm_inference");
    EXPECT_EQ(infer->value(node.inputs[3]).name, "mean");
    EXPECT_EQ(infer->value(node.inputs[4]).name, "var");
    ++norms;
  }
  EXPECT_EQ(norms, 2);
}

TEST(InferenceForm, AStatisticOfAMeanAndAVarIsRefusedByName) {
  const Result<Graph> graph = TwoNorms("a.mean", "b.var");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const Result<Graph> infer = InferenceForm(*graph);
  EXPECT_EQ(infer.status().code(), ErrorCode::kInvalidModel);
  EXPECT_THAT(infer.status().message(), testing::HasSubstr("the update of 'mean' reads both"));
}

}  // namespace
}  // namespace ridge
