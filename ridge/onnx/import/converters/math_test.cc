#include <gtest/gtest.h>

#include <cmath>

#include "ridge/onnx/import/converters/test_node.h"

namespace ridge {
namespace {

using Numbers = std::vector<double>;

Tensor Floats(Dims dims, const std::vector<float>& values) {
  return Tensor::FromFloats(std::move(dims), values);
}

// A linear layer is one node, and its weights stay the file's parameters.
TEST(OnnxGemm, LinearLayerIsOneMatmul) {
  TestNode node("Gemm", 13);
  node.Input("x", Counted({2, 3}))
      .Initializer("w", Counted({4, 3}))
      .Initializer("bias", Counted({4}))
      .Int("transB", 1);
  EXPECT_EQ(node.Operators(), "matmul");
  const Result<OnnxImport> import = node.Import();
  ASSERT_TRUE(import.ok()) << import.status().message();
  for (const char* name : {"w", "bias"}) {
    const ValueId id = import->graph.FindValue(name);
    ASSERT_NE(id, kNoValue) << name;
    EXPECT_EQ(import->graph.value(id).kind, ValueKind::kParameter) << name;
  }
  EXPECT_EQ(node.Run(), (Numbers{5, 15, 25, 35, 14, 51, 88, 125}));
}

TEST(OnnxGemm, ScalesBeforeIntegersAreRounded) {
  TestNode node("Gemm", 13);
  node.Input("a", Counted({1, 2}, DType::kI32))
      .Input("b", Counted({2, 2}, DType::kI32))
      .Input("c", Counted({2}, DType::kI32))
      .Float("alpha", 0.5)
      .Float("beta", 0.5);
  EXPECT_EQ(node.Run(), (Numbers{1, 2}));  // (2, 3) / 2 + (0, 1) / 2
}

TEST(OnnxGemm, RefusesACThatDoesNotBroadcast) {
  TestNode node("Gemm", 13);
  node.Input("a", Counted({2, 3})).Input("b", Counted({3, 4})).Input("c", Counted({2}));
  EXPECT_EQ(node.Error(), "net: Gemm 'y0': C is [2]; it must broadcast to [2,4]");
}

TEST(OnnxMatMul, VectorsAreRowsAndColumnsThatVanish) {
  const auto type = [](Dims a, Dims b) {
    TestNode node("MatMul", 13);
    return node.Input("a", Counted(std::move(a))).Input("b", Counted(std::move(b))).Type();
  };
  EXPECT_EQ(type({3}, {3}), "f32[]");
  EXPECT_EQ(type({3}, {5, 3, 2}), "f32[5,2]");
  EXPECT_EQ(type({5, 2, 3}, {3}), "f32[5,2]");
  EXPECT_EQ(type({5, 1, 2, 3}, {4, 3, 2}), "f32[5,4,2,2]");
  EXPECT_EQ(type({}, {3}), "net: MatMul 'y0': A is [], B is [3]; both need at least 1 dimension");
}

TEST(OnnxReduceLogSumExp, IsStableAndFiniteWhereItCanBe) {
  TestNode node("ReduceLogSumExp", 18);
  node.Input("x", Floats({3, 2}, {1000, 1000, -INFINITY, -INFINITY, INFINITY, 0}))
      .ConstantInput("axes", {1})
      .Int("keepdims", 0);
  const Numbers y = node.Run();
  ASSERT_EQ(y.size(), 3U);
  EXPECT_NEAR(y[0], 1000 + std::log(2), 1e-4);
  EXPECT_EQ(y[1], -INFINITY);
  EXPECT_EQ(y[2], INFINITY);
}

TEST(OnnxReduce, WithoutAxesNothingIsSummedWhenNoopIsSet) {
  TestNode noop("ReduceSumSquare", 18);
  noop.Input("x", Counted({3})).Int("noop_with_empty_axes", 1);
  EXPECT_EQ(noop.Run(), (Numbers{0, 1, 4}));
  TestNode all("ReduceSumSquare", 18);
  EXPECT_EQ(all.Input("x", Counted({3})).Run(), (Numbers{5}));
}

TEST(OnnxReduce, AxesAreAnAttributeBeforeAndAnInputSince) {
  TestNode before("ReduceMax", 12), since("ReduceMax", 18);
  before.Input("x", Counted({2, 3})).Ints("axes", {-1}).Int("keepdims", 0);
  since.Input("x", Counted({2, 3})).ConstantInput("axes", {0}).Int("keepdims", 0);
  EXPECT_EQ(before.Run(), (Numbers{2, 5}));
  EXPECT_EQ(since.Run(), (Numbers{3, 4, 5}));
}

TEST(OnnxReduce, MeanOfIntegersIsRoundedTowardZero) {
  TestNode node("ReduceMean", 13);
  EXPECT_EQ(node.Input("x", Counted({4}, DType::kI32)).Run(), (Numbers{1}));
}

std::string EinsumOperators(const char* equation, Dims a, Dims b) {
  TestNode node("Einsum", 12);
  node.Input("a", Counted(std::move(a))).Input("b", Counted(std::move(b)));
  return node.Text("equation", equation).Operators();
}

// Attention's products lie as matmul wants them: no transpose is made.
TEST(OnnxEinsum, CopiesNothingThatMatmulCanReadTransposed) {
  EXPECT_EQ(EinsumOperators("bhqd,bhkd->bhqk", {2, 3, 4, 5}, {2, 3, 6, 5}), "matmul");
  EXPECT_EQ(EinsumOperators("bhqk,bhkd->bhqd", {2, 3, 4, 6}, {2, 3, 6, 5}), "matmul");
  EXPECT_EQ(EinsumOperators("ji,jk->ik", {3, 2}, {3, 4}), "matmul");
  EXPECT_EQ(EinsumOperators("ij,ij->ij", {2, 3}, {2, 3}), "mul");
}

TEST(OnnxEinsum, SumsDiagonalsAndStretchedExtents) {
  TestNode trace("Einsum", 12);
  EXPECT_EQ(trace.Input("a", Counted({3, 3})).Text("equation", "ii").Run(), (Numbers{12}));
  TestNode stretched("Einsum", 12);
  stretched.Input("a", Counted({2, 3})).Input("b", Counted({1, 2}));
  EXPECT_EQ(stretched.Text("equation", "ij,jk->ik").Run(), (Numbers{0, 3, 0, 12}));
}

TEST(OnnxEinsum, RefusesWhatDoesNotFit) {
  const auto error = [](const char* equation) {
    TestNode node("Einsum", 12);
    return node.Input("a", Counted({2, 3})).Text("equation", equation).Error();
  };
  EXPECT_EQ(error("ijk->i"),
            "net: Einsum 'y0': the term 'ijk' of the equation has 3 labels, input 0 is [2,3]");
  EXPECT_EQ(error("ij,jk"),
            "net: Einsum 'y0': equation 'ij,jk' has 2 terms; the node has 1 inputs");
  EXPECT_EQ(error("ij->k"),
            "net: Einsum 'y0': equation 'ij->k': each label of the output must be there once and "
            "in some input");
  EXPECT_EQ(error("ii"), "net: Einsum 'y0': a label stands for 2 and 3 in one input");
  EXPECT_EQ(error("i#"),
            "net: Einsum 'y0': equation has '#' in the term 'i#'; terms are letters "
            "and one ellipsis");
}

}  // namespace
}  // namespace ridge
