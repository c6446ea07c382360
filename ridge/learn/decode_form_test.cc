// The law: token by token gives the logits of the whole sequence.
#include "ridge/learn/decode_form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ridge/graph/interpret.h"
#include "ridge/graph/text.h"
#include "ridge/learn/training_graph.h"
#include "ridge/models/model.h"

namespace ridge {
namespace {

Graph Inference(const std::string& spec) {
  const Result<Graph> forward = BuildModel(spec, {.batch = 1, .dtype = DType::kF64});
  EXPECT_TRUE(forward.ok()) << forward.status().message();
  return BuildInferenceGraph(*forward, {"label"})->graph;
}

Tensor Tokens(const std::vector<int64_t>& tokens) {
  return Tensor::FromInts({1, static_cast<int64_t>(tokens.size())}, tokens);
}

// The logits of each position, by the whole graph.
std::vector<double> WholeLogits(const Graph& graph, const std::vector<int64_t>& tokens) {
  const auto values = EvaluateGraph(graph, {{"tokens", Tokens(tokens)}}, /*seed=*/5);
  EXPECT_TRUE(values.ok()) << values.status().message();
  const Tensor& logits = (*values)[static_cast<size_t>(graph.FindOutput("logits"))];
  std::vector<double> result;
  for (int64_t i = 0; i < logits.elements(); ++i) result.push_back(logits.at(i));
  return result;
}

// The same, token by token: what a step leaves in the states is what the next one finds.
std::vector<double> SteppedLogits(const Graph& graph, const std::vector<int64_t>& tokens) {
  std::map<std::string, Tensor> given;
  std::vector<double> result;
  for (size_t at = 0; at < tokens.size(); ++at) {
    given["tokens"] = Tokens({tokens[at]});
    given[kPositionInput] = Tensor::FromInts({1}, std::vector{static_cast<int64_t>(at)});
    const auto values = EvaluateGraph(graph, given, /*seed=*/5);
    EXPECT_TRUE(values.ok()) << values.status().message();
    const Tensor& logits = (*values)[static_cast<size_t>(graph.FindOutput("logits"))];
    for (int64_t i = 0; i < logits.elements(); ++i) result.push_back(logits.at(i));
    for (const GraphUpdate& update : graph.updates())
      given[graph.value(update.variable).name] = (*values)[static_cast<size_t>(update.value)];
  }
  return result;
}

TEST(DecodeForm, TokenByTokenGivesTheLogitsOfTheWhole) {
  const std::vector<int64_t> tokens = {3, 1, 4, 1, 5, 9, 2};
  for (const std::string spec :
       {"gpt:vocab=11,context=7,hidden=8,layers=2,heads=2",
        "gpt:vocab=11,context=7,hidden=8,layers=1,heads=1,tied=1,gelu_tanh=1",
        "llama:vocab=11,context=7,hidden=8,layers=2,heads=4,kv_heads=2,inner=12"}) {
    const Graph whole = Inference(spec);
    const Result<Graph> decode = DecodeForm(whole, "tokens", "logits");
    ASSERT_TRUE(decode.ok()) << decode.status().message();
    EXPECT_EQ(TypeToString(decode->type(decode->FindOutput("logits"))), "f64[1,1,11]");
    const std::vector<double> want = WholeLogits(whole, tokens);
    const std::vector<double> have = SteppedLogits(*decode, tokens);
    ASSERT_EQ(have.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(have[i], want[i], 1e-12) << spec;
  }
}

std::string Error(const std::string& body) {
  const Result<Graph> graph =
      ParseGraph("graph net\n  tokens = input i64[1,4]\n" + body, "net.ridge");
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return DecodeForm(*graph, "tokens", "logits").status().message();
}

constexpr char kEmbedding[] =
    "  table = parameter f32[5,6] init=normal(1)\n"
    "  x = gather(table, tokens)\n";

TEST(DecodeForm, RefusesWhatLooksAhead) {
  EXPECT_EQ(Error(std::string(kEmbedding) + "  logits = softmax(x, axis=1)\n"
                                            "  output logits\n"),
            "net: can't be run token by token: softmax 'logits' (line 5) couples positions");
  EXPECT_EQ(Error(std::string(kEmbedding) + "  h = reshape(x, dims=[1,1,4,6])\n"
                                            "  y, lse = attention(h, h, h, scale=1)\n"
                                            "  logits = reshape(y, dims=[1,4,6])\n"
                                            "  output logits\n"),
            "net: can't be run token by token: attention 'y' (line 6) is not causal, or has a "
            "mask");
  EXPECT_EQ(Error(std::string(kEmbedding) + "  y = input f32[1,4,6]\n"
                                            "  logits = add(x, y)\n"
                                            "  output logits\n"),
            "net: can't be run token by token: the logits depend on the input 'y' too");
}

TEST(DecodeForm, RefusesWhatIsNoLanguageModel) {
  EXPECT_EQ(Error("  x = cast(tokens, to=\"f32\")\n  logits = reduce_sum(x, axes=[1])\n"
                  "  output logits\n"),
            "net: is no language model: 'tokens' is i64[1,4] and 'logits' is f32[1]; they must be "
            "i64[1,positions] and f32[1,positions,vocabulary]");
}

}  // namespace
}  // namespace ridge
