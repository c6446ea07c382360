#include "ridge/learn/frozen_weights.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ridge/graph/interpret.h"
#include "ridge/graph/text.h"
#include "ridge/graph/verify.h"

namespace ridge {
namespace {

// A frozen weight of a product, one of a convolution, one that is trained, one that is looked up
// too, and one that is small.
constexpr char kNet[] =
    "graph net\n"
    "  ids = input i64[3]\n"
    "  image = input f32[1,8,4,4]\n"
    "  table = parameter f32[64,96] init=normal(1) frozen=1\n"
    "  a.weight = parameter f32[96,64] init=normal(0.1) frozen=1\n"
    "  b.weight = parameter f32[96,64] init=normal(0.1)\n"
    "  small = parameter f32[8,64] init=normal(0.1) frozen=1\n"
    "  conv.weight = parameter f32[61,8,3,3] init=uniform(0.2) frozen=1\n"
    "  x = gather(table, ids)\n"
    "  h = matmul(x, a.weight)\n"
    "  k = matmul(h, b.weight, transpose_b=1)\n"
    "  y = matmul(k, table, transpose_b=1)\n"
    "  s = matmul(h, small, transpose_b=1)\n"
    "  z = conv(image, conv.weight)\n"
    "  output y\n"
    "  output s\n"
    "  output z\n";

Graph Net() {
  Result<Graph> graph = ParseGraph(kNet, "net.ridge");
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return graph.ok() ? *graph : Graph();
}

Graph Kept(const FrozenWeightsOptions& options) {
  Result<Graph> graph = WithFrozenWeights(Net(), options);
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  if (!graph.ok()) return Graph();
  EXPECT_TRUE(CheckGraph(*graph).ok()) << CheckGraph(*graph).message();
  return *graph;
}

std::map<std::string, Tensor> Inputs() {
  Tensor image({DType::kF32, {1, 8, 4, 4}});
  for (int64_t i = 0; i < image.elements(); ++i)
    StoreFromDouble(DType::kF32, image.mutable_data(), i, std::cos(static_cast<double>(i)));
  return {{"ids", Tensor::FromInts({3}, std::vector<int64_t>{0, 63, 7})}, {"image", image}};
}

Tensor ValueOf(const Graph& graph, const std::string& name) {
  const auto values = EvaluateGraph(graph, Inputs(), /*seed=*/5);
  EXPECT_TRUE(values.ok()) << values.status().message();
  return values.ok() ? values->at(static_cast<size_t>(graph.FindValue(name))) : Tensor();
}

TEST(FrozenWeights, OnlyThoseOfProductsAreKeptInFourBits) {
  int64_t kept = 0;
  const Result<Graph> graph = WithFrozenWeights(Net(), {.nf4 = true}, &kept);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(kept, 2);
  EXPECT_EQ(TypeToString(graph->type(graph->FindValue("a.weight.nf4"))), "u8[3072]");
  EXPECT_EQ(TypeToString(graph->type(graph->FindValue("a.weight.nf4_scales"))), "bf16[96]");
  EXPECT_EQ(TypeToString(graph->type(graph->FindValue("conv.weight.nf4"))), "u8[2196]");
  for (const char* name : {"table", "b.weight", "small"})
    EXPECT_EQ(graph->value(graph->FindValue(name)).kind, ValueKind::kParameter) << name;
  EXPECT_FALSE(graph->value(graph->FindValue("a.weight.nf4")).trainable);
}

// The error of a normal weight is below a tenth of its deviation, squared mean.
TEST(FrozenWeights, StartNearWhatTheyStandFor) {
  const Tensor want = ValueOf(Net(), "a.weight"), is = ValueOf(Kept({.nf4 = true}), "a.weight");
  double square = 0;
  for (int64_t i = 0; i < want.elements(); ++i) square += std::pow(is.at(i) - want.at(i), 2);
  EXPECT_LT(std::sqrt(square / static_cast<double>(want.elements())), 0.1 * 0.1);
  EXPECT_GT(square, 0);
}

TEST(FrozenWeights, TargetsChooseAndUnknownOnesAreRefused) {
  EXPECT_EQ(Kept({.nf4 = true, .targets = {"conv.*"}}).FindValue("a.weight.nf4"), kNoValue);
  const Result<Graph> refused = WithFrozenWeights(Net(), {.nf4 = true, .targets = {"b.*"}});
  EXPECT_EQ(refused.status().message(),
            "net: --frozen-weights target='b.*' matches no parameter; the nearest are a.weight, "
            "conv.weight. hint: --frozen-weights target='a.*'");
}

TEST(FrozenWeights, NothingFrozenIsRefused) {
  Graph graph = Net();
  for (const ValueId id : graph.ValuesOfKind(ValueKind::kParameter))
    graph.mutable_value(id).trainable = true;
  EXPECT_EQ(WithFrozenWeights(graph, {.nf4 = true}).status().message(),
            "net: --frozen-weights finds no frozen weight of at least 4096 numbers that only "
            "products read. hint: --lora rank=8 or --freeze PATTERN freezes some");
}

TEST(FrozenWeights, DequantizedTheyHaveTheirNamesAndTypesAgain) {
  const Graph graph = Kept({.nf4 = true});
  std::map<std::string, Tensor> tensors;
  for (const char* name : {"a.weight.nf4", "a.weight.nf4_scales", "b.weight"})
    tensors[name] = ValueOf(graph, name);
  ASSERT_TRUE(DequantizeFrozen(Net(), tensors).ok());
  EXPECT_EQ(tensors.size(), 2U);
  EXPECT_TRUE(tensors.at("a.weight").same_bits(ValueOf(graph, "a.weight")));
}

TEST(FrozenWeights, TextOfTheGraphKeepsHowTheyStart) {
  const Graph graph = Kept({.nf4 = true});
  const Result<Graph> again = ParseGraph(PrintGraph(graph), "again.ridge");
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(PrintGraph(*again), PrintGraph(graph));
  for (const char* name : {"a.weight", "conv.weight"})
    EXPECT_TRUE(ValueOf(*again, name).same_bits(ValueOf(graph, name))) << name;
}

TEST(FrozenWeights, BadTextsOfTheOptionAreRefused) {
  const std::map<std::string, std::string> errors = {
      {"int4", "'int4' is neither nf4 nor f32"},
      {"nf4,8", "'8' is no target=PATTERN of nf4"},
      {"nf4,target=", "'target=' is no target=PATTERN of nf4"},
      {"f32,target=*", "'target=*' is no target=PATTERN of nf4"}};
  for (const auto& [text, why] : errors) {
    EXPECT_EQ(ParseFrozenWeights(text).status().message(),
              "--frozen-weights is '" + text + "': " + why +
                  ". hint: --frozen-weights nf4,target='*.attn.*'");
  }
}

}  // namespace
}  // namespace ridge
