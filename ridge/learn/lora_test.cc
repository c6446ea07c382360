#include "ridge/learn/lora.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ridge/graph/interpret.h"
#include "ridge/graph/text.h"
#include "ridge/graph/trainable.h"
#include "ridge/graph/verify.h"

namespace ridge {
namespace {

// A product with a transposed weight and a bias, one with a weight as it is, a table that is also
// the last layer, and a convolution.
constexpr char kNet[] =
    "graph net\n"
    "  ids = input i64[batch=2,3]\n"
    "  image = input f64[batch=2,2,4,4]\n"
    "  table.weight = parameter f64[5,4] init=normal(1)\n"
    "  attn.q.weight = parameter f64[6,4] init=normal(1)\n"
    "  attn.q.bias = parameter f64[6] init=normal(1)\n"
    "  mlp.kernel = parameter f64[6,4] init=normal(1)\n"
    "  conv.weight = parameter f64[3,2,3,3] init=normal(1)\n"
    "  x = gather(table.weight, ids)\n"
    "  q = matmul(x, attn.q.weight, attn.q.bias, transpose_b=1)\n"
    "  h = matmul(q, mlp.kernel)\n"
    "  y = matmul(h, table.weight, transpose_b=1)\n"
    "  z = conv(image, conv.weight, stride=[2,1], padding=[1,1,0,1])\n"
    "  output y\n"
    "  output z\n";

Graph Net() {
  Result<Graph> graph = ParseGraph(kNet, "net.ridge");
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return graph.ok() ? *graph : Graph();
}

Graph Adapted(const LoraOptions& options, const std::vector<std::string>& trainable = {}) {
  Result<Graph> graph = WithLora(Net(), options, trainable);
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  if (!graph.ok()) return Graph();
  EXPECT_TRUE(CheckGraph(*graph).ok()) << CheckGraph(*graph).message();
  return *graph;
}

const LoraOptions kAll = {.rank = 2, .alpha = 6, .targets = {"*"}};

// Some numbers for each variable.
std::map<std::string, Tensor> Numbers(const Graph& graph) {
  std::map<std::string, Tensor> numbers;
  int64_t n = 0;
  for (const ValueInfo& info : graph.values()) {
    if (info.kind != ValueKind::kParameter) continue;
    Tensor tensor(info.type);
    for (int64_t i = 0; i < tensor.elements(); ++i)
      StoreFromDouble(DType::kF64, tensor.mutable_data(), i,
                      std::sin(1.3 * static_cast<double>(++n)));
    numbers[info.name] = tensor;
  }
  return numbers;
}

// Output `name` for fixed inputs.
std::vector<double> Output(const Graph& graph, std::map<std::string, Tensor> given,
                           const std::string& name) {
  given["ids"] = Tensor::FromInts({2, 3}, std::vector<int64_t>{0, 1, 4, 2, 2, 3});
  Tensor image({DType::kF64, {2, 2, 4, 4}});
  for (int64_t i = 0; i < 64; ++i)
    StoreFromDouble(DType::kF64, image.mutable_data(), i, std::cos(static_cast<double>(i)));
  given["image"] = image;
  const auto values = EvaluateGraph(graph, given);
  EXPECT_TRUE(values.ok()) << values.status().message();
  std::vector<double> numbers;
  if (!values.ok()) return numbers;
  const Tensor& tensor = values->at(static_cast<size_t>(graph.FindOutput(name)));
  for (int64_t i = 0; i < tensor.elements(); ++i) numbers.push_back(tensor.at(i));
  return numbers;
}

void ExpectNear(const std::vector<double>& a, const std::vector<double>& b, double bound) {
  ASSERT_EQ(a.size(), b.size());
  ASSERT_FALSE(a.empty());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], bound) << i;
}

TEST(Lora, AdaptersHaveTheNamesAndShapesOfPeft) {
  const Graph graph = Adapted(kAll);
  std::string names;
  for (ValueId id : graph.ValuesOfKind(ValueKind::kParameter)) {
    const ValueInfo& info = graph.value(id);
    if (info.trainable) names += info.name + " " + TypeToString(info.type) + "\n";
  }
  EXPECT_EQ(names,
            "table.lora_A.weight f64[2,4]\ntable.lora_B.weight f64[5,2]\n"
            "attn.q.lora_A.weight f64[2,4]\nattn.q.lora_B.weight f64[6,2]\n"
            "mlp.kernel.lora_A.weight f64[2,6]\nmlp.kernel.lora_B.weight f64[4,2]\n"
            "conv.lora_A.weight f64[2,2,3,3]\nconv.lora_B.weight f64[3,2,1,1]\n");
}

TEST(Lora, StartsAsTheModelWithoutAdapters) {
  for (const char* output : {"y", "z"})
    ExpectNear(Output(Adapted(kAll), {}, output), Output(Net(), {}, output), 1e-13);
}

TEST(Lora, IsTheModelWithMergedWeights) {
  const Graph adapted = Adapted(kAll);
  const std::map<std::string, Tensor> numbers = Numbers(adapted);
  std::map<std::string, Tensor> merged = numbers;
  ASSERT_TRUE(MergeLora(Net(), kAll, merged).ok());
  EXPECT_EQ(merged.size(), 5u);
  for (const char* output : {"y", "z"}) {
    ExpectNear(Output(adapted, numbers, output), Output(Net(), merged, output), 1e-10);
    EXPECT_GT(std::abs(Output(adapted, numbers, output)[0] - Output(Net(), numbers, output)[0]),
              1e-3);
  }
}

TEST(Lora, ComputesBesideTheProductAndSumsOnlySharedWeights) {
  LoraOptions options = kAll;
  options.targets = {"attn.*", "mlp.*", "conv.*"};
  const Graph beside = Adapted(options);
  for (const ValueInfo& info : beside.values())
    EXPECT_FALSE(info.name.ends_with(".lora_BA")) << info.name;
  EXPECT_NE(Adapted(kAll).FindValue("table.lora_BA"), kNoValue);
}

TEST(Lora, WithoutATargetAdaptsWhatOnlyProductsRead) {
  const Graph graph = Adapted({.rank = 1, .alpha = 1, .targets = {}});
  EXPECT_NE(graph.FindValue("attn.q.lora_A.weight"), kNoValue);
  EXPECT_NE(graph.FindValue("mlp.kernel.lora_A.weight"), kNoValue);
  EXPECT_EQ(graph.FindValue("table.lora_A.weight"), kNoValue);
  EXPECT_EQ(graph.FindValue("conv.lora_A.weight"), kNoValue);
}

TEST(Lora, TrainableParametersTrainBesideTheAdapters) {
  const Graph graph = Adapted(kAll, {"*.bias"});
  EXPECT_EQ(FrozenParameters(graph), (std::vector<std::string>{"table.weight", "attn.q.weight",
                                                               "mlp.kernel", "conv.weight"}));
}

TEST(Lora, ATargetWithoutAWeightNamesTheNearest) {
  const LoraOptions options = {.rank = 1, .alpha = 1, .targets = {"atn.*"}};
  EXPECT_EQ(WithLora(Net(), options, {}).status().message(),
            "net: --lora target='atn.*' matches no parameter; the nearest are attn.q.weight, "
            "table.weight, mlp.kernel. hint: --lora target='attn.q.*'");
}

TEST(Lora, AlphaIsTheRankWhereItIsNotGiven) {
  const Result<LoraOptions> options = ParseLora("rank=8,target=*.qkv.*,target=*.mlp.*");
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->rank, 8);
  EXPECT_EQ(options->scale(), 1);
  EXPECT_EQ(options->targets, (std::vector<std::string>{"*.qkv.*", "*.mlp.*"}));
}

TEST(Lora, WhatIsNoAdapterIsRefused) {
  const std::string hint = ". hint: --lora rank=8,alpha=16,target='*.qkv.*'";
  const auto message = [](const std::string& text) { return ParseLora(text).status().message(); };
  EXPECT_EQ(message("8"), "--lora is '8': '8' is none of rank, alpha, target" + hint);
  EXPECT_EQ(message("alpha=2"), "--lora is 'alpha=2': rank must be at least 1" + hint);
  EXPECT_EQ(message("rank=x"), "--lora is 'rank=x': rank is 'x'" + hint);
  EXPECT_EQ(message("rank=2,alpha=-1"),
            "--lora is 'rank=2,alpha=-1': alpha must be above 0" + hint);
}

TEST(Lora, ACheckpointWithoutAnAdapterIsRefused) {
  std::map<std::string, Tensor> numbers = Numbers(Net());
  EXPECT_EQ(
      MergeLora(Net(), {.rank = 2, .alpha = 2, .targets = {"attn.q.weight"}}, numbers).message(),
      "net: the checkpoint lacks an adapter of 'attn.q.weight', attn.q.lora_A.weight or "
      "attn.q.lora_B.weight");
}

}  // namespace
}  // namespace ridge
