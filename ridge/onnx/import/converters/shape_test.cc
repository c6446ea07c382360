#include <gtest/gtest.h>

#include <cstdint>

#include "ridge/onnx/import/converters/test_node.h"

namespace ridge {
namespace {

using Numbers = std::vector<double>;

TEST(OnnxSlice, TakesAttributesBeforeOpset10AndInputsSince) {
  TestNode before("Slice", 9);
  before.Input("x", Counted({5})).Ints("starts", {1}).Ints("ends", {INT64_MAX}).Ints("axes", {0});
  EXPECT_EQ(before.Run(), (Numbers{1, 2, 3, 4}));
  TestNode since("Slice", 13);
  since.Input("x", Counted({5}))
      .ConstantInput("s", {-1})
      .ConstantInput("e", {INT64_MIN})
      .ConstantInput("a", {0})
      .ConstantInput("t", {-2});
  EXPECT_EQ(since.Run(), (Numbers{4, 2, 0}));
}

TEST(OnnxSlice, NeedsToKnowItsRange) {
  TestNode node("Slice", 13);
  node.Input("x", Counted({5})).Input("s", Counted({1}, DType::kI64)).ConstantInput("e", {3});
  EXPECT_EQ(node.Error(),
            "net: Slice 'y0': starts (input 1, 's') depends on data; it must be known before "
            "planning");
}

TEST(OnnxSplit, LastPartIsTheSmallest) {
  TestNode node("Split", 18, 3);
  node.Input("x", Counted({7})).Int("num_outputs", 3);
  EXPECT_EQ(node.Run(0), (Numbers{0, 1, 2}));
  EXPECT_EQ(node.Run(2), (Numbers{6}));
}

TEST(OnnxSplit, SizesAddUpToTheExtent) {
  TestNode node("Split", 11, 2);
  node.Input("x", Counted({7})).Ints("split", {3, 5});
  EXPECT_EQ(node.Error(),
            "net: Split 'y0': split is [3,5] for 2 outputs and extent 7; it must have one size for "
            "each output, and they must add up to the extent");
}

TEST(OnnxTranspose, NegativeAxesCountFromTheEnd) {
  TestNode node("Transpose", 13);
  node.Input("x", Counted({1, 2, 3})).Ints("perm", {0, -1, -2});
  EXPECT_EQ(node.Type(), "f32[1,3,2]");
  EXPECT_EQ(node.Run(), (Numbers{0, 3, 1, 4, 2, 5}));
}

TEST(OnnxReshape, ZeroCopiesUnlessAllowed) {
  TestNode copies("Reshape", 13);
  copies.Input("x", Counted({2, 3})).ConstantInput("shape", {0, 3, -1});
  EXPECT_EQ(copies.Type(), "f32[2,3,1]");
  TestNode means_zero("Reshape", 14);
  means_zero.Input("x", Counted({0, 3})).ConstantInput("shape", {3, 0}).Int("allowzero", 1);
  EXPECT_EQ(means_zero.Type(), "f32[3,0]");
}

TEST(OnnxReshape, FlattenSqueezeAndUnsqueezeMoveNothing) {
  TestNode flatten("Flatten", 9);
  flatten.Input("x", Counted({2, 3, 4})).Int("axis", -1);
  EXPECT_EQ(flatten.Operators(), "reshape");
  EXPECT_EQ(flatten.Type(), "f32[6,4]");
  TestNode squeeze("Squeeze", 13);
  squeeze.Input("x", Counted({2, 1, 4, 1}));
  EXPECT_EQ(squeeze.Operators(), "reshape");
  EXPECT_EQ(squeeze.Type(), "f32[2,4]");
  TestNode unsqueeze("Unsqueeze", 11);
  unsqueeze.Input("x", Counted({2, 4})).Ints("axes", {-1, 0});
  EXPECT_EQ(unsqueeze.Operators(), "reshape");
  EXPECT_EQ(unsqueeze.Type(), "f32[1,2,4,1]");
}

TEST(OnnxSqueeze, RefusesAnExtentThatIsNotOne) {
  TestNode node("Squeeze", 13);
  node.Input("x", Counted({2, 3})).ConstantInput("axes", {1});
  EXPECT_EQ(node.Error(),
            "net: Squeeze 'y0': axis 1 of [2,3] has extent 3; only 1 can be squeezed");
}

TEST(OnnxPad, EveryModeReachesFurtherThanTheInput) {
  const auto padded = [](const char* mode) {
    TestNode node("Pad", 19);
    node.Input("x", Counted({3})).ConstantInput("pads", {4, 3}).Text("mode", mode);
    return node.Run();
  };
  EXPECT_EQ(padded("constant"), (Numbers{0, 0, 0, 0, 0, 1, 2, 0, 0, 0}));
  EXPECT_EQ(padded("edge"), (Numbers{0, 0, 0, 0, 0, 1, 2, 2, 2, 2}));
  EXPECT_EQ(padded("reflect"), (Numbers{0, 1, 2, 1, 0, 1, 2, 1, 0, 1}));
  EXPECT_EQ(padded("wrap"), (Numbers{2, 0, 1, 2, 0, 1, 2, 0, 1, 2}));
}

TEST(OnnxPad, NegativePadsCropFirst) {
  TestNode node("Pad", 18);
  node.Input("x", Counted({4}))
      .ConstantInput("pads", {-2, 1})
      .Absent()
      .ConstantInput("axes", {0})
      .Text("mode", "edge");
  EXPECT_EQ(node.Run(), (Numbers{2, 3, 3}));
}

TEST(OnnxPad, RefusesToCropMoreThanThereIs) {
  TestNode node("Pad", 13);
  node.Input("x", Counted({4})).ConstantInput("pads", {-3, -2});
  EXPECT_EQ(node.Error(), "net: Pad 'y0': pads -3 before and -2 after axis 0 of extent 4");
}

// A causal mask is a comparison of 4096 numbers with 4096, and not 16 million numbers in the model.
TEST(OnnxTrilu, StoresNoLargeMask) {
  TestNode node("Trilu", 14);
  node.Input("x", Tensor({DType::kF32, {4096, 4096}})).Int("upper", 0);
  const Result<OnnxImport> import = node.Import();
  ASSERT_TRUE(import.ok()) << import.status().message();
  for (const ValueInfo& info : import->graph.values()) {
    if (info.kind == ValueKind::kConstant) {
      EXPECT_LE(info.type.elements(), 4096) << info.name;
    }
  }
}

TEST(OnnxTrilu, DiagonalMayComeFromData) {
  TestNode node("Trilu", 14);
  node.Input("x", Counted({2, 3})).Input("k", Tensor::Scalar(DType::kI64, 1));
  EXPECT_EQ(node.Run(), (Numbers{0, 1, 2, 0, 0, 5}));
}

TEST(OnnxRange, IsExactForLargeIntegersAndEmptyForTheWrongDirection) {
  const auto range = [](int64_t start, int64_t limit, int64_t delta) {
    TestNode node("Range", 11);
    for (const auto& [name, value] : {std::pair{"s", start}, {"l", limit}, {"d", delta}})
      node.Initializer(name, Tensor::FromInts({}, std::vector<int64_t>{value}));
    return node.Type();
  };
  EXPECT_EQ(range(INT64_MAX - 3, INT64_MAX, 2), "i64[2]");
  EXPECT_EQ(range(INT64_MIN, INT64_MAX, INT64_MAX), "i64[3]");
  EXPECT_EQ(range(5, 1, 2), "i64[0]");
  EXPECT_EQ(range(0, INT64_MAX, 1),
            "net: Range 'y0': gives more than 2^22 numbers, or its delta is 0");
}

TEST(OnnxTile, RepeatsEachAxisInOrder) {
  TestNode node("Tile", 13);
  node.Input("x", Counted({2, 2})).ConstantInput("repeats", {2, 2});
  EXPECT_EQ(node.Run(), (Numbers{0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3}));
  TestNode huge("Tile", 13);
  huge.Input("x", Counted({2, 2})).ConstantInput("repeats", {INT64_MAX, 2});
  EXPECT_EQ(huge.Error(),
            "net: Tile 'y0': repeats is [9223372036854775807,2] for [2,2]; too large, or negative");
}

TEST(OnnxReverseSequence, ReversesEachSampleUpToItsLength) {
  TestNode node("ReverseSequence", 10);
  node.Input("x", Counted({2, 3}))
      .ConstantInput("lens", {3, 2})
      .Int("batch_axis", 0)
      .Int("time_axis", 1);
  EXPECT_EQ(node.Run(), (Numbers{2, 1, 0, 4, 3, 5}));
}

}  // namespace
}  // namespace ridge
