#include "ridge/learn/index_extent.h"

#include <gtest/gtest.h>

#include "ridge/graph/builder.h"

namespace ridge {
namespace {

class IndexExtentTest : public ::testing::Test {
 protected:
  Value Tokens() { return b_.Input("tokens", {DType::kI64, {4, 6}}, {"batch", ""}); }
  Value Table(int64_t rows) {
    return b_.Constant(Tensor(TensorType{DType::kF32, {rows, 3}}), b_.graph().UniqueName("table"));
  }
  int64_t Extent(Value input) { return IndexExtents(b_.graph())[static_cast<size_t>(input.id)]; }

  GraphBuilder b_{"net"};
};

TEST_F(IndexExtentTest, TheRowsOfATable) {
  const Value tokens = Tokens();
  Gather(Table(50), tokens);
  EXPECT_EQ(Extent(tokens), 50);
}

TEST_F(IndexExtentTest, TheSmallestOfSeveral) {
  const Value tokens = Tokens();
  Gather(Table(50), tokens);
  Gather(Table(20), tokens);
  EXPECT_EQ(Extent(tokens), 20);
}

TEST_F(IndexExtentTest, BehindWhatMovesElementsAndNotBehindArithmetic) {
  const Value tokens = Tokens();
  const Value moved = Transpose(Reshape(tokens, {6, 4}), {1, 0});
  const Value negative = moved < b_.Scalar(DType::kI64, 0);
  const Value wrapped =
      Where(negative, moved + b_.Scalar(DType::kI64, 50), moved);  // as ONNX counts
  Gather(Table(50), wrapped);
  EXPECT_EQ(Extent(tokens), 50);
  const Value other = b_.Input("other", {DType::kI64, {4}}, {"batch"});
  Gather(Table(7), other + b_.Scalar(DType::kI64, 3));
  EXPECT_EQ(Extent(other), 0);
  ASSERT_TRUE(b_.ok()) << b_.status().message();
}

TEST_F(IndexExtentTest, BeingGatheredFromIsNotPicking) {
  const Value tokens = Tokens();
  Gather(tokens, b_.Scalar(DType::kI64, 0), 1);
  EXPECT_EQ(Extent(tokens), 0);
}

TEST_F(IndexExtentTest, TheRowsThatAScatterReplaces) {
  const Value indices = b_.Input("indices", {DType::kI64, {4}}, {"batch"});
  Op("scatter", {Table(5), indices, b_.Constant(Tensor(TensorType{DType::kF32, {4, 3}}))});
  ASSERT_TRUE(b_.ok()) << b_.status().message();
  EXPECT_EQ(Extent(indices), 5);
}

TEST_F(IndexExtentTest, TheClassesOfALoss) {
  const Value logits = b_.Input("logits", {DType::kF32, {4, 7}}, {"batch", ""});
  const Value label = b_.Input("label", {DType::kI64, {4}}, {"batch"});
  Op("softmax_cross_entropy", {logits, label});
  ASSERT_TRUE(b_.ok()) << b_.status().message();
  EXPECT_EQ(Extent(label), 7);
  EXPECT_EQ(Extent(logits), 0);
}

TEST_F(IndexExtentTest, TheClassesAndLengthsOfCtc) {
  const Value logits = b_.Input("logits", {DType::kF32, {4, 9, 5}}, {"batch", "", ""});
  const Value frames = b_.Input("frames", {DType::kI64, {4}}, {"batch"});
  const Value lengths = b_.Input("lengths", {DType::kI64, {4}}, {"batch"});
  const Value targets = Tokens();
  Op("ctc_loss", {logits, targets, frames, lengths});
  ASSERT_TRUE(b_.ok()) << b_.status().message();
  EXPECT_EQ(Extent(targets), 5);
  EXPECT_EQ(Extent(frames), 10);
  EXPECT_EQ(Extent(lengths), 7);
}

}  // namespace
}  // namespace ridge
