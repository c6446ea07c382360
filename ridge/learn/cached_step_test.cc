// The law: with the keys and values of all tokens in its caches, a step gives the logits of the
// last one.
#include "ridge/learn/cached_step.h"

#include <gtest/gtest.h>

#include "ridge/graph/interpret.h"
#include "ridge/graph/text.h"
#include "ridge/learn/training_graph.h"
#include "ridge/models/model.h"

namespace ridge {
namespace {

Graph Inference(const std::string& spec, int64_t batch = 1) {
  const Result<Graph> forward = BuildModel(spec, {.batch = batch, .dtype = DType::kF64});
  EXPECT_TRUE(forward.ok()) << forward.status().message();
  return BuildInferenceGraph(*forward, {"label"})->graph;
}

std::string Gpt(int64_t context) {
  return "gpt:vocab=11,hidden=8,layers=2,heads=2,context=" + std::to_string(context);
}

int64_t StateBytes(const Graph& graph, const std::string& prefix) {
  int64_t bytes = 0;
  for (const ValueId id : graph.ValuesOfKind(ValueKind::kState)) {
    if (graph.value(id).name.starts_with(prefix)) bytes += graph.type(id).bytes();
  }
  return bytes;
}

// Without positions, which a step does not know.
TEST(CachedStep, GivesTheLogitsOfTheLastToken) {
  const std::vector<int64_t> tokens = {3, 1, 4, 1};
  const Graph whole = Inference(Gpt(4));
  const auto values = EvaluateGraph(
      whole,
      {{"tokens", Tensor::FromInts({1, 4}, tokens)}, {"pos.weight", Tensor({DType::kF64, {4, 8}})}},
      /*seed=*/5);
  ASSERT_TRUE(values.ok()) << values.status().message();
  const Result<Graph> step = CachedStep(Inference(Gpt(1)), "tokens", "logits", 4);
  ASSERT_TRUE(step.ok()) << step.status().message();
  std::map<std::string, Tensor> given = {
      {"tokens", Tensor::FromInts({1, 1}, std::vector{tokens.back()})},
      {"pos.weight", Tensor({DType::kF64, {1, 8}})}};
  int number = 0;
  for (const Node& node : whole.nodes()) {
    if (node.op->name != "attention") continue;
    const std::string name = "cache." + std::to_string(number++);
    given[name + ".k"] = (*values)[static_cast<size_t>(node.inputs[1])];
    given[name + ".v"] = (*values)[static_cast<size_t>(node.inputs[2])];
  }
  const auto stepped = EvaluateGraph(*step, given, /*seed=*/5);
  ASSERT_TRUE(stepped.ok()) << stepped.status().message();
  const Tensor& want = (*values)[static_cast<size_t>(whole.FindOutput("logits"))];
  const Tensor& have = (*stepped)[static_cast<size_t>(step->FindOutput("logits"))];
  ASSERT_EQ(have.elements(), 11);
  for (int64_t i = 0; i < 11; ++i) EXPECT_NEAR(have.at(i), want.at(3 * 11 + i), 1e-12);
}

// 2 layers kv_heads head_dim length batch numbers of 8 bytes.
TEST(CachedStep, CachesHoldKeysAndValuesOfAllTokens) {
  const std::string spec = "llama:vocab=11,context=1,hidden=8,layers=3,heads=4,kv_heads=2,inner=12";
  for (const int64_t batch : {1, 4}) {
    const Result<Graph> step = CachedStep(Inference(spec, batch), "tokens", "logits", 7);
    ASSERT_TRUE(step.ok()) << step.status().message();
    EXPECT_EQ(StateBytes(*step, "cache."), 2 * 3 * 2 * 2 * 7 * batch * 8);
    EXPECT_EQ(StateBytes(*step, ""), StateBytes(*step, "cache.")) << "nothing else is kept";
    EXPECT_EQ(TypeToString(step->type(step->FindOutput("logits"))),
              batch == 1 ? "f64[1,1,11]" : "f64[4,1,11]");
    EXPECT_EQ(step->outputs().size(), 1u + 2 * 3) << "each layer's own key and value";
  }
}

// An encoder runs once: what is left of it are the keys and values of its output.
TEST(CachedStep, WhatDoesNotDependOnTheTokensIsKept) {
  const std::string spec =
      "whisper_tiny:vocab=11,frames=16,mels=4,context=1,hidden=8,layers=2,heads=2";
  const Result<Graph> step = CachedStep(Inference(spec), "tokens", "logits", 5);
  ASSERT_TRUE(step.ok()) << step.status().message();
  EXPECT_EQ(StateBytes(*step, "once."), 2 * 2 * 8 * 8 * 8) << "two layers, eight places of 8";
  EXPECT_EQ(step->FindValue("features"), kNoValue);
  for (const ValueId id : step->ValuesOfKind(ValueKind::kParameter))
    EXPECT_FALSE(step->value(id).name.starts_with("model.encoder")) << step->value(id).name;
}

TEST(CachedStep, RefusesWhatIsNoLanguageModel) {
  const Result<Graph> net = ParseGraph(
      "graph net\n  tokens = input i64[1,1]\n  x = input f32[1,4]\n  logits = relu(x)\n"
      "  y = cast(tokens, to=\"f32\")\n  output logits\n  output y\n",
      "net.ridge");
  ASSERT_TRUE(net.ok()) << net.status().message();
  EXPECT_EQ(CachedStep(*net, "tokens", "logits", 2).status().message(),
            "net: is no language model: 'logits' does not depend on 'tokens'");
  EXPECT_EQ(CachedStep(*net, "ids", "logits", 2).status().message(),
            "net: is no language model: it lacks the input 'ids' or the output 'logits'");
}

}  // namespace
}  // namespace ridge
