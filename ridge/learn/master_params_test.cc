#include "ridge/learn/master_params.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ridge/graph/text.h"

namespace ridge {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Graph Parsed(const std::string& text) {
  Result<Graph> graph = ParseGraph("graph net\n" + text, "test");
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return graph.ok() ? std::move(*graph) : Graph();
}

constexpr char kHalf[] = R"(
  x = input f16[2,3]
  w = parameter f16[4,3] init=uniform(0.5)
  k = parameter f16[4] frozen=1
  b = parameter f32[4]
  s = state f32[] role=statistic
  y = matmul(x, w, k, transpose_b=1)
  n = reduce_mean(b)
  output y
  update s = n
)";

TEST(MasterParamsTest, HalfParametersBecomeF32BehindACast) {
  const Graph before = Parsed(kHalf);
  EXPECT_THAT(HalfParameters(before), ElementsAre("w"));
  const Result<Graph> after = WithMasterParams(before);
  ASSERT_TRUE(after.ok()) << after.status().message();
  const ValueInfo& w = after->value(after->FindValue("w"));
  EXPECT_EQ(w.type, (TensorType{DType::kF32, {4, 3}}));
  EXPECT_EQ(w.init.kind, Init::Kind::kUniform);
  const Node& matmul = after->node(after->value(after->FindOutput("y")).producer);
  EXPECT_EQ(after->type(matmul.inputs[1]).dtype, DType::kF16);
  EXPECT_EQ(after->type(after->FindOutput("y")).dtype, DType::kF16);
}

TEST(MasterParamsTest, AllElseStaysAndTwiceIsOnce) {
  const Result<Graph> once = WithMasterParams(Parsed(kHalf));
  ASSERT_TRUE(once.ok());
  EXPECT_FALSE(once->value(once->FindValue("k")).trainable);
  EXPECT_EQ(once->type(once->FindValue("k")).dtype, DType::kF16);
  EXPECT_EQ(once->updates().size(), 1u);
  EXPECT_THAT(HalfParameters(*once), IsEmpty());
  EXPECT_EQ(PrintGraph(*WithMasterParams(*once)), PrintGraph(*once));
}

TEST(MasterParamsTest, NamesOfTheGraphStayWhereTheyAre) {
  const Graph before = Parsed(R"(
  w = parameter f16[4,3]
  cast = input f32[2,3]
  x = cast(cast, to="f16")
  y = matmul(x, w, transpose_b=1)
  output y
)");
  const Result<Graph> after = WithMasterParams(before);
  ASSERT_TRUE(after.ok()) << after.status().message();
  EXPECT_EQ(after->value(after->FindValue("cast")).kind, ValueKind::kInput);
  EXPECT_NE(after->FindValue("cast_2"), kNoValue);
}

TEST(MasterParamsTest, ContentsAreWidened) {
  Graph graph = Parsed(kHalf);
  Tensor values({DType::kF16, {4, 3}});
  for (int64_t i = 0; i < 12; ++i)
    StoreFromDouble(DType::kF16, values.mutable_data(), i, 0.25 * static_cast<double>(i));
  graph.mutable_value(graph.FindValue("w")).init = Init::FromTensor(values);
  const Result<Graph> after = WithMasterParams(graph);
  ASSERT_TRUE(after.ok());
  EXPECT_EQ(after->value(after->FindValue("w")).init.tensor.as<float>()[11], 2.75F);
}

}  // namespace
}  // namespace ridge
