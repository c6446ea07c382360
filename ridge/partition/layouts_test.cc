#include "ridge/partition/layouts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ridge/graph/builder.h"
#include "ridge/partition/normal_form.h"
#include "ridge/partition/tensor_pairs.h"

namespace ridge {
namespace {

using testing::UnorderedElementsAre;

std::string ErrorOf(const Graph& graph, const std::string& mesh, const std::string& shard) {
  const Result<Layout> layout = MakeLayout(graph, *ParseMesh(mesh), *ParseSharding(shard));
  return layout.ok() ? "" : layout.status().message();
}

// x + down(relu(up(norm(x))))
Graph Mlp(bool norm_inside = false) {
  GraphBuilder b("net");
  const Value x = b.Input("x", {DType::kF32, {6, 8}}, {"batch", ""});
  const Value up = Relu(b.Linear(Op("rms_norm", {x}), 12, "up"));
  const Value inner = norm_inside ? Op("rms_norm", {up}) : up;
  b.Output("y", x + b.Linear(inner, 8, "down", /*bias=*/false));
  return *b.Build();
}

TEST(Sharding, IsPrintedAsItIsRead) {
  for (const char* text : {"none", "zero1", "zero3", "sequence", "zero2,sequence"})
    EXPECT_EQ(ShardingText(*ParseSharding(text)), text);
  EXPECT_EQ(ParseSharding("zero4").status().message(),
            "shard \"zero4\": \"zero4\" must be one of zero1, zero2, zero3 and sequence, each kind "
            "once. hint: write zero3,sequence");
  EXPECT_EQ(ParseSharding("zero1,zero2").status().message(),
            "shard \"zero1,zero2\": \"zero2\" must be one of zero1, zero2, zero3 and sequence, "
            "each kind once. hint: write zero3,sequence");
}

TEST(Layouts, RefuseWhatHasNoUse) {
  const Graph net = Mlp();
  EXPECT_EQ(ErrorOf(net, "p=2", ""),
            "mesh p=2: axis p has no use here; d cuts the batch and t the weights of attention and "
            "MLP. hint: name the axes d and t");
  EXPECT_EQ(
      ErrorOf(net, "d=4", ""),
      "mesh d=4: d=4 does not divide the batch of 6 (input 'x' is f32[6,8]). hint: --batch 8");
  EXPECT_EQ(ErrorOf(net, "t=2", "zero1"),
            "mesh t=2 has no axis d, along which zero1 stores parts. hint: add d=2");
  EXPECT_EQ(ErrorOf(net, "d=2", "sequence"),
            "mesh d=2 has no axis t, along which sequence cuts tokens. hint: add t=2");
}

std::vector<std::string> NamesOf(const Graph& graph, const std::vector<ValueId>& ids) {
  std::vector<std::string> names;
  for (ValueId id : ids) names.push_back(graph.value(id).name);
  return names;
}

// Columns with their bias, then rows; from the letters between, not from names.
TEST(TensorPairs, AreFoundWhereFeaturesStayApart) {
  const Graph net = *NormalForm(Mlp());
  const TensorPairs found = FindTensorPairs(net, *ParseMesh("t=4"), 0);
  ASSERT_EQ(found.pairs.size(), 1u);
  EXPECT_EQ(net.value(found.pairs[0].row).name, "down.weight");
  EXPECT_THAT(NamesOf(net, found.pairs[0].columns), UnorderedElementsAre("up.weight", "up.bias"));
}

TEST(TensorPairs, AreNotFoundAcrossANormOrInUnevenFeatures) {
  EXPECT_TRUE(FindTensorPairs(*NormalForm(Mlp(true)), *ParseMesh("t=4"), 0).pairs.empty());
  EXPECT_TRUE(FindTensorPairs(*NormalForm(Mlp()), *ParseMesh("t=5"), 0).pairs.empty());
  EXPECT_EQ(ErrorOf(*NormalForm(Mlp()), "t=5", ""),
            "mesh t=5: t=5 finds no two products of 'net' between which features stay apart, as in "
            "attention and MLP, or their heads and features are no multiples of 5. hint: use d "
            "alone, which cuts the batch");
}

// Query, key and value in one weight: a third of each head's columns each.
TEST(TensorPairs, CutFusedProjectionsByHeads) {
  GraphBuilder b("net");
  const Value x = b.Input("x", {DType::kF32, {2, 5, 8}}, {"batch", "", ""});
  const Value qkv = Reshape(b.Linear(x, 24, "qkv"), {2, 5, 3, 4, 2});
  const Value y = OpOutputs("attention", {qkv}, {{"scale", 0.5}, {"layout", "packed"}})[0];
  b.Output("y", b.Linear(Reshape(y, {2, 5, 8}), 8, "out"));
  const Graph net = *NormalForm(*b.Build());
  const TensorPairs found = FindTensorPairs(net, *ParseMesh("t=4"), 0);
  ASSERT_EQ(found.pairs.size(), 1u);
  EXPECT_EQ(found.weights.at(net.FindValue("qkv.weight")).cuts, (std::vector<Cut>{{0, 0, 3}}));
  EXPECT_EQ(found.weights.at(net.FindValue("qkv.bias")).cuts, (std::vector<Cut>{{0, 0, 3}}));
  EXPECT_EQ(found.weights.at(net.FindValue("out.weight")).cuts, (std::vector<Cut>{{1, 0, 1}}));
  EXPECT_TRUE(FindTensorPairs(net, *ParseMesh("t=8"), 0).pairs.empty());  // four heads
}

}  // namespace
}  // namespace ridge
