#include "ridge/learn/narrow_form.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ridge/graph/interpret.h"
#include "ridge/graph/text.h"
#include "ridge/learn/training_graph.h"
#include "ridge/models/model.h"

namespace ridge {
namespace {

Graph Inference(const std::string& spec) {
  const Result<Graph> forward = BuildModel(spec, {.batch = 1});
  EXPECT_TRUE(forward.ok()) << forward.status().message();
  return BuildInferenceGraph(*forward, {"label"})->graph;
}

Graph Narrowed(const Graph& graph, DType type = DType::kBF16) {
  Result<Graph> narrow = NarrowForm(graph, type);
  EXPECT_TRUE(narrow.ok()) << narrow.status().message();
  return std::move(*narrow);
}

DType TypeOf(const Graph& graph, const std::string& name) {
  return graph.type(graph.FindValue(name)).dtype;
}

TEST(NarrowForm, WeightsOfProductsAndTablesAreShortAndAllElseStays) {
  const Graph graph = Narrowed(Inference("gpt:vocab=11,context=4,hidden=8,layers=1,heads=2"));
  for (const char* name :
       {"tok.weight", "blocks.0.qkv.weight", "blocks.0.down.weight", "head.weight"})
    EXPECT_EQ(TypeOf(graph, name), DType::kBF16) << name;
  for (const char* name : {"pos.weight", "blocks.0.qkv.bias", "blocks.0.ln1.weight"})
    EXPECT_EQ(TypeOf(graph, name), DType::kF32) << name;
  EXPECT_EQ(TypeToString(graph.type(graph.FindOutput("logits"))), "f32[1,4,11]");
}

// A tied table is read by a gather and by a product: there is one of it.
TEST(NarrowForm, AWeightOfSeveralReadersIsOne) {
  const Graph graph =
      Narrowed(Inference("gpt:vocab=11,context=4,hidden=8,layers=1,heads=2,tied=1"), DType::kF16);
  EXPECT_EQ(TypeOf(graph, "tok.weight"), DType::kF16);
  EXPECT_EQ(graph.FindValue("tok.weight_2"), kNoValue);
}

// Other readers than products see the weight cast.
TEST(NarrowForm, OtherReadersSeeF32) {
  const Result<Graph> net = ParseGraph(
      "graph net\n  x = input f32[2,4]\n  w = parameter f32[4,4] init=uniform(0.5)\n"
      "  y = matmul(x, w)\n  sums = reduce_sum(w, axes=[0])\n  z = add(y, sums)\n  output z\n",
      "net.ridge");
  ASSERT_TRUE(net.ok()) << net.status().message();
  const Graph graph = Narrowed(*net);
  EXPECT_EQ(TypeOf(graph, "w"), DType::kBF16);
  EXPECT_EQ(TypeOf(graph, "w.f32"), DType::kF32);
  EXPECT_EQ(TypeOf(graph, "sums"), DType::kF32);
}

TEST(NarrowForm, TheNumbersAreThoseOfSixteenBits) {
  for (const char* spec : {"cnn",
                           "llama:vocab=11,context=4,hidden=8,layers=2,heads=4,kv_heads=2,"
                           "inner=12"}) {
    const Graph wide = Inference(spec), narrow = Narrowed(wide);
    const bool pictures = wide.FindValue("image") != kNoValue;
    std::map<std::string, Tensor> given;
    if (pictures) {
      Tensor image(wide.type(wide.FindValue("image")));
      for (int64_t i = 0; i < image.elements(); ++i)
        StoreFromDouble(DType::kF32, image.mutable_data(), i, std::sin(static_cast<double>(i)));
      given["image"] = std::move(image);
    } else {
      given["tokens"] = Tensor::FromInts({1, 4}, std::vector<int64_t>{3, 1, 4, 1});
    }
    const auto a = EvaluateGraph(wide, given, /*seed=*/5), b = EvaluateGraph(narrow, given, 5);
    ASSERT_TRUE(a.ok() && b.ok()) << spec << ": " << b.status().message();
    const Tensor& want = (*a)[static_cast<size_t>(wide.FindOutput("logits"))];
    const Tensor& have = (*b)[static_cast<size_t>(narrow.FindOutput("logits"))];
    double most = 0;
    for (int64_t i = 0; i < want.elements(); ++i) most = std::max(most, std::abs(want.at(i)));
    for (int64_t i = 0; i < want.elements(); ++i)
      EXPECT_NEAR(have.at(i), want.at(i), most / 32) << spec << " " << i;
  }
}

}  // namespace
}  // namespace ridge
