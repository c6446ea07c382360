#include "ridge/learn/index_extent.h"

#include <gtest/gtest.h>

#include "ridge/graph/builder.h"
#include "ridge/models/model.h"
#include "ridge/train/job/job_data.h"

namespace ridge {
namespace {

class IndexExtentTest : public ::testing::Test {
 protected:
  Value Tokens() { return b_.Input("tokens", {DType::kI64, {4, 6}}, {"batch", ""}); }
  Value Table(int64_t rows) {
    return b_.Constant(Tensor(TensorType{DType::kF32, {rows, 3}}), b_.graph().UniqueName("table"));
  }
  int64_t Extent(Value input) { return IndexExtent(b_.graph(), input.id); }

  GraphBuilder b_{"net"};
};

TEST_F(IndexExtentTest, TheRowsOfATable) {
  const Value tokens = Tokens();
  b_.Op("gather", {Table(50), tokens});
  EXPECT_EQ(Extent(tokens), 50);
}

TEST_F(IndexExtentTest, TheSmallestOfSeveral) {
  const Value tokens = Tokens();
  b_.Op("gather", {Table(50), tokens});
  b_.Op("gather", {Table(20), tokens});
  EXPECT_EQ(Extent(tokens), 20);
}

TEST_F(IndexExtentTest, BehindWhatMovesElementsAndNotBehindArithmetic) {
  const Value tokens = Tokens();
  const Value moved = b_.Transpose(b_.Reshape(tokens, {6, 4}), {1, 0});
  const Value negative = b_.Op("less", {moved, b_.Scalar(DType::kI64, 0)});
  const Value wrapped =
      b_.Where(negative, b_.Add(moved, b_.Scalar(DType::kI64, 50)), moved);  // as ONNX counts
  b_.Op("gather", {Table(50), wrapped});
  EXPECT_EQ(Extent(tokens), 50);
  const Value other = b_.Input("other", {DType::kI64, {4}}, {"batch"});
  b_.Op("gather", {Table(7), b_.Add(other, b_.Scalar(DType::kI64, 3))});
  EXPECT_EQ(Extent(other), 0);
  ASSERT_TRUE(b_.ok()) << b_.status().message();
}

TEST_F(IndexExtentTest, BeingGatheredFromIsNotPicking) {
  const Value tokens = Tokens();
  b_.Op("gather", {tokens, b_.Scalar(DType::kI64, 0)}, {{"axis", int64_t{1}}});
  EXPECT_EQ(Extent(tokens), 0);
}

TEST_F(IndexExtentTest, MadeUpTokensCoverTheVocabulary) {
  const Result<Graph> gpt = BuildModel("gpt:vocab=40,context=16,hidden=8,layers=1,heads=1");
  ASSERT_TRUE(gpt.ok());
  const Result<ForwardFacts> facts = InspectForward(*gpt);
  ASSERT_TRUE(facts.ok());
  const Result<DataSplits> data = OpenData("synthetic", SyntheticOptions(*gpt, *facts, /*seed=*/1));
  ASSERT_TRUE(data.ok());
  std::vector<int64_t> tokens(16);
  int64_t largest = 0;
  for (int64_t sample = 0; sample < 50; ++sample) {
    for (int field = 0; field < 2; ++field) {
      ASSERT_TRUE(data->train->Read(sample, field, tokens.data()).ok());
      for (int64_t token : tokens) {
        ASSERT_GE(token, 0);
        ASSERT_LT(token, 40);
        largest = std::max(largest, token);
      }
    }
  }
  EXPECT_EQ(largest, 39);
}

}  // namespace
}  // namespace ridge
