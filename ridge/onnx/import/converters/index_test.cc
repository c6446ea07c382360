#include <gtest/gtest.h>

#include <cmath>

#include "ridge/onnx/import/converters/test_node.h"

namespace ridge {
namespace {

using Numbers = std::vector<double>;

Tensor Ints(Dims dims, const std::vector<int64_t>& values) {
  return Tensor::FromInts(std::move(dims), values);
}

TEST(OnnxScatterElements, LaterUpdatesWinAndNegativeIndicesCountFromTheEnd) {
  TestNode node("ScatterElements", 13);
  node.Input("x", Counted({3})).Input("i", Ints({3}, {0, -3, -1})).Input("u", Counted({3}));
  EXPECT_EQ(node.Run(), (Numbers{1, 1, 2}));
}

TEST(OnnxScatterNd, IndicesOutOfRangeWriteNothing) {
  TestNode node("ScatterND", 18);
  node.Input("x", Counted({2, 2}))
      .Input("i", Ints({3, 2}, {0, 2, 1, -1, INT64_MIN, 0}))
      .Input("u", Counted({3}))
      .Text("reduction", "add");
  EXPECT_EQ(node.Run(), (Numbers{0, 1, 2, 4}));
}

TEST(OnnxGatherNd, IndicesOutOfRangeGiveNanAndReadNoNeighbour) {
  TestNode node("GatherND", 13);
  node.Input("x", Counted({2, 2})).Input("i", Ints({2, 2}, {0, 2, 1, -2}));
  const Numbers y = node.Run();
  ASSERT_EQ(y.size(), 2U);
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_EQ(y[1], 2);
}

TEST(OnnxTensorScatter, LinearWritesPastTheEndAreDropped) {
  TestNode node("TensorScatter", 24);
  node.Input("cache", Tensor({DType::kF32, {2, 3, 1}}))
      .Input("update", Counted({2, 2, 1}))
      .Input("at", Ints({2}, {2, -1}));
  EXPECT_EQ(node.Run(), (Numbers{0, 0, 0, 3, 0, 0}));
}

TEST(OnnxTopK, KIsAnAttributeBeforeOpset10) {
  TestNode node("TopK", 9, 2);
  node.Input("x", Counted({4})).Int("k", 2);
  EXPECT_EQ(node.Run(0), (Numbers{3, 2}));
  EXPECT_EQ(node.Run(1), (Numbers{3, 2}));
}

TEST(OnnxArgMin, IsExactAtTheEdgesOfIntegers) {
  for (const auto& [dtype, least] : {std::pair{DType::kI8, -128.0}, {DType::kU8, 0.0}}) {
    Tensor x({dtype, {4}});
    const double values[] = {least + 1, least, 100, least};
    for (int64_t i = 0; i < 4; ++i) StoreFromDouble(dtype, x.mutable_data(), i, values[i]);
    TestNode first("ArgMin", 13), last("ArgMin", 13);
    EXPECT_EQ(first.Input("x", x).Run(), (Numbers{1}));
    EXPECT_EQ(last.Input("x", x).Int("select_last_index", 1).Run(), (Numbers{3}));
  }
}

TEST(OnnxHardmax, WorkedOnFlattenedRowsBeforeOpset13) {
  TestNode before("Hardmax", 11), since("Hardmax", 13);
  before.Input("x", Counted({1, 2, 2}));
  since.Input("x", Counted({1, 2, 2}));
  EXPECT_EQ(before.Run(), (Numbers{0, 0, 0, 1}));
  EXPECT_EQ(since.Run(), (Numbers{0, 1, 0, 1}));
}

TEST(OnnxUnique, ComparesLargeIntegersExactly) {
  TestNode node("Unique", 11, 4);
  const int64_t large = int64_t{1} << 53;
  node.ConstantInput("x", {large + 1, large, large + 1});
  EXPECT_EQ(node.Run(1), (Numbers{1, 0}));
  EXPECT_EQ(node.Run(2), (Numbers{1, 0, 1}));
  EXPECT_EQ(node.Run(3), (Numbers{1, 2}));
}

TEST(OnnxNonZero, NeedsToKnowItsInput) {
  TestNode node("NonZero", 13);
  node.Input("x", Counted({4}));
  EXPECT_EQ(node.Error(),
            "net: NonZero 'y0': X (input 0) depends on data; it must be known before planning, for "
            "the output's shape depends on it");
}

TEST(OnnxCompress, IsAGatherWhoseDataMayBeUnknown) {
  TestNode node("Compress", 11);
  node.Input("x", Counted({2, 3})).ConstantInput("c", {1, 0, 1}).Int("axis", 1);
  EXPECT_EQ(node.Operators(), "gather");
  EXPECT_EQ(node.Run(), (Numbers{0, 2, 3, 5}));
}

}  // namespace
}  // namespace ridge
