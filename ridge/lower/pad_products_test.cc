// Padded logits: what reads them computes the same, and so do the gradients.
#include <gtest/gtest.h>

#include <algorithm>

#include "ridge/graph/autodiff.h"
#include "ridge/graph/builder.h"
#include "ridge/graph/test_results.h"
#include "ridge/lower/passes.h"
#include "ridge/lower/test_rules.h"

namespace ridge {
namespace {

class MultiplesOf8 : public TestRules {
 public:
  ProductMultiple MultipleOfProducts() const override { return {8, 64}; }
};

struct Classifier {
  int64_t classes = 1027;
  bool transposed = true, bias = false;
  std::string also = {};  // read by: "" nobody, "argmax", "exp", "output"
};

Graph Forward(const Classifier& c) {
  GraphBuilder b("net");
  const Value x = b.Input("x", {DType::kF64, {3, 5}});
  const Value w = b.Parameter(
      "w", {DType::kF64, c.transposed ? Dims{c.classes, 5} : Dims{5, c.classes}}, Init::Uniform(1));
  std::vector<Value> operands = {x, w};
  if (c.bias) operands.push_back(b.Parameter("bias", {DType::kF64, {c.classes}}, Init::Uniform(1)));
  const Value logits = Op("matmul", operands, {{"transpose_b", c.transposed ? 1 : 0}});
  const Value label = b.Input("label", {DType::kI64, {3}});
  b.Output("loss", Mean(Op("softmax_cross_entropy", {logits, label})));
  if (c.also == "argmax") b.Output("best", Op("argmax", {logits}, {{"axis", -1}}));
  if (c.also == "exp") b.Output("sum", Sum(Exp(logits)));
  if (c.also == "output") b.Output("y", logits);
  Result<Graph> graph = b.Build();
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return *std::move(graph);
}

Graph WithGradients(const Graph& forward) {
  GraphBuilder b(forward);
  std::vector<Value> parameters;
  for (const char* name : {"w", "bias"}) {
    if (const ValueId id = forward.FindValue(name); id != kNoValue) parameters.push_back(b.At(id));
  }
  const Value loss = b.At(forward.FindOutput("loss"));
  Result<std::vector<Value>> grads = AppendGradients(b, loss, parameters);
  EXPECT_TRUE(grads.ok()) << grads.status().message();
  for (size_t i = 0; i < grads->size(); ++i) b.Output("grad" + std::to_string(i), (*grads)[i]);
  Result<Graph> graph = b.Build();
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return *std::move(graph);
}

Graph PaddedOf(const Graph& graph, const RewriteRules& rules = MultiplesOf8()) {
  Result<Graph> padded = PadProducts(graph, rules);
  EXPECT_TRUE(padded.ok()) << padded.status().message();
  return *std::move(padded);
}

int64_t Pads(const Graph& graph) {
  return std::count_if(graph.nodes().begin(), graph.nodes().end(),
                       [](const Node& node) { return node.op->name == "pad"; });
}

TEST(PadProducts, LossAndGradientsAreTheSame) {
  for (const Classifier& c :
       {Classifier{}, Classifier{.transposed = false}, Classifier{.bias = true},
        Classifier{.classes = 1100, .bias = true, .also = "argmax"}}) {
    const Graph forward = Forward(c);
    const auto want = TestResults(WithGradients(forward));
    const Graph padded = PaddedOf(forward);
    EXPECT_GT(Pads(padded), 0);
    const auto have = TestResults(WithGradients(padded));
    for (const auto& [name, tensor] : want) {
      ASSERT_EQ(tensor.type(), have.at(name).type()) << name;
      for (int64_t i = 0; i < tensor.elements(); ++i)
        ASSERT_NEAR(tensor.at(i), have.at(name).at(i), 1e-12) << name;
    }
  }
}

TEST(PadProducts, WhatReadsAllClassesKeepsThem) {
  for (const Classifier& c : {Classifier{.classes = 1032}, Classifier{.classes = 1023},
                              Classifier{.also = "exp"}, Classifier{.also = "output"}})
    EXPECT_EQ(Pads(PaddedOf(Forward(c))), 0) << c.classes << " " << c.also;
}

TEST(PadProducts, ADeviceThatDoesNotAskKeepsThem) {
  EXPECT_EQ(Pads(PaddedOf(Forward({}), UnlimitedRules())), 0);
}

TEST(PadProducts, AGraphThatHasItsGradientsKeepsThem) {
  EXPECT_EQ(Pads(PaddedOf(WithGradients(Forward({})))), 0);
}

}  // namespace
}  // namespace ridge
