#include "ridge/lower/dequantize_late.h"

#include <gtest/gtest.h>

#include "ridge/graph/interpret.h"
#include "ridge/graph/text.h"
#include "ridge/graph/verify.h"

namespace ridge {
namespace {

constexpr char kStep[] = R"(graph step
  x = input f32[3,8]
  codes = parameter u8[64] init=nf4_codes(w f32[8,16] normal(1.0)) frozen=1
  scales = parameter bf16[2] init=nf4_scales(w f32[8,16] normal(1.0)) frozen=1
  w = dequantize_nf4(codes, scales, dims=[8,16])
  low = cast(w, to="bf16")
  y = matmul(x, w)
  back = matmul(y, w, transpose_b=1)
  rough = cast(low, to="f32")
  output back
  output rough
)";

Graph Late(const Graph& graph) {
  Result<Graph> late = DequantizeLate(graph);
  EXPECT_TRUE(late.ok()) << late.status().message();
  EXPECT_TRUE(CheckGraph(*late).ok()) << CheckGraph(*late).message();
  return *std::move(late);
}

Graph Parse(const std::string& text) {
  Result<Graph> graph = ParseGraph(text, "g.ridge");
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return *std::move(graph);
}

TEST(DequantizeLate, EachReaderHasACopyRightBeforeIt) {
  EXPECT_EQ(PrintGraph(Late(Parse(kStep))), R"(graph step
  x = input f32[3,8]
  codes = parameter u8[64] init=nf4_codes(w f32[8,16] normal(1.0)) frozen=1
  scales = parameter bf16[2] init=nf4_scales(w f32[8,16] normal(1.0)) frozen=1
  w_2 = dequantize_nf4(codes, scales, dims=[8,16])
  y = matmul(x, w_2)
  w_3 = dequantize_nf4(codes, scales, dims=[8,16])
  back = matmul(y, w_3, transpose_b=1)
  low_2 = dequantize_nf4(codes, scales, dims=[8,16], to="bf16")
  rough = cast(low_2, to="f32")
  output back
  output rough
)");
}

TEST(DequantizeLate, BitsStay) {
  const Graph graph = Parse(kStep), late = Late(graph);
  Tensor x({DType::kF32, {3, 8}});
  for (int64_t i = 0; i < 24; ++i)
    StoreFromDouble(DType::kF32, x.mutable_data(), i, 0.1 * static_cast<double>(i) - 1);
  const auto before = EvaluateGraph(graph, {{"x", x}}, 3),
             after = EvaluateGraph(late, {{"x", x}}, 3);
  ASSERT_TRUE(before.ok() && after.ok());
  EXPECT_TRUE(before->at(static_cast<size_t>(graph.FindValue("back")))
                  .same_bits(after->at(static_cast<size_t>(late.FindValue("back")))));
}

TEST(DequantizeLate, AnOutputKeepsItsValue) {
  const Graph graph = Parse(std::string(kStep) + "  output w\n");
  const Graph late = Late(graph);
  EXPECT_NE(late.FindValue("w"), kNoValue);
}

TEST(DequantizeLate, OtherGraphsStayAsTheyAre) {
  const Graph graph = Parse("graph g\n  x = input f32[2]\n  y = relu(x)\n  output y\n");
  EXPECT_EQ(PrintGraph(Late(graph)), PrintGraph(graph));
}

}  // namespace
}  // namespace ridge
