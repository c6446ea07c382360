#include <cmath>
#include <random>

#include "ridge/onnx/import/converters/test_one_node.h"

namespace ridge {
namespace {

using Numbers64 = std::vector<double>;

Numbers64 Draw(size_t count, int low, int high, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> numbers(low, high);
  Numbers64 drawn(count);
  for (double& v : drawn) v = numbers(random);
  return drawn;
}

// The definition, in integers.
Numbers64 Product(const Numbers64& a, const Numbers64& b, size_t m, size_t k, size_t n,
                  double a_zero, double b_zero) {
  Numbers64 y(m * n);
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = 0; j < n; ++j) {
      for (size_t t = 0; t < k; ++t)
        y[i * n + j] += (a[i * k + t] - a_zero) * (b[t * n + j] - b_zero);
    }
  }
  return y;
}

// Sums of up to 1000 products of numbers near 255 lie far above what f32 holds exactly.
TEST(MatMulInteger, IsExactForLongSums) {
  for (const size_t k : {1U, 255U, 256U, 257U, 1000U}) {
    const Numbers64 a = Draw(3 * k, 200, 255, 1), b = Draw(k * 2, 100, 127, 2);
    OneNode node("MatMulInteger", 10);
    const auto depth = static_cast<int64_t>(k);
    node.Input(Numbers(DType::kU8, {3, depth}, a)).Input(Numbers(DType::kI8, {depth, 2}, b));
    node.Input(Numbers(DType::kU8, {}, {1})).Input(Numbers(DType::kI8, {}, {-128}));
    EXPECT_EQ(node.Values(), Product(a, b, 3, k, 2, 1, -128)) << k;
  }
}

TEST(MatMulInteger, ZeroPointsOfRowsAndColumns) {
  OneNode node("MatMulInteger", 10);
  node.Input(Numbers(DType::kU8, {2, 2}, {1, 2, 3, 4}));
  node.Input(Numbers(DType::kU8, {2, 2}, {5, 6, 7, 8}));
  node.Input(Numbers(DType::kU8, {2}, {1, 3})).Input(Numbers(DType::kU8, {2}, {5, 8}));
  EXPECT_EQ(node.Values(), (Numbers64{2, 0, 2, 0}));
}

TEST(MatMulInteger, OfVectors) {
  OneNode node("MatMulInteger", 10);
  node.Input(Numbers(DType::kU8, {3}, {1, 2, 3})).Input(Numbers(DType::kU8, {3}, {4, 5, 6}));
  const Result<Tensor> y = node.Run();
  ASSERT_TRUE(y.ok()) << y.status().message();
  EXPECT_EQ(y->type(), (TensorType{DType::kI32, {}}));
  EXPECT_EQ(y->at(0), 32);
}

TEST(MatMulInteger, RefusesAZeroPointThatWouldBroadcastX) {
  OneNode node("MatMulInteger", 10);
  node.Input(Numbers(DType::kU8, {2, 1}, {1, 2})).Input(Numbers(DType::kU8, {1, 2}, {5, 6}));
  node.Input(Numbers(DType::kU8, {2, 3}, {1, 3, 1, 1, 1, 1}));
  EXPECT_EQ(node.Refusal(),
            "MatMulInteger 'n': input 2 has shape [2,3]; it must be one number or one for each row "
            "or channel of [2,1]");
}

// 40 channels of 3 x 3 taps are 360 products: two parts.
TEST(ConvInteger, IsExactForManyChannels) {
  const Numbers64 x = Draw(40 * 9, 200, 255, 3), w = Draw(2 * 40 * 9, 200, 255, 4);
  OneNode node("ConvInteger", 10);
  node.Input(Numbers(DType::kU8, {1, 40, 3, 3}, x)).Input(Numbers(DType::kU8, {2, 40, 3, 3}, w));
  Numbers64 expected(2);
  for (size_t o = 0; o < 2; ++o) {
    for (size_t i = 0; i < 360; ++i) expected[o] += x[i] * w[o * 360 + i];
  }
  EXPECT_EQ(node.Values(), expected);
}

TEST(ConvInteger, OfManyChannelsInGroups) {
  const Numbers64 x = Draw(4 * 300, 200, 255, 5), w = Draw(2 * 600, 200, 255, 6);
  OneNode node("ConvInteger", 10);
  node.Integer("group", 2);
  node.Input(Numbers(DType::kU8, {1, 1200, 1}, x)).Input(Numbers(DType::kU8, {2, 600, 1}, w));
  Numbers64 expected(2);
  for (size_t i = 0; i < 1200; ++i) expected[i / 600] += x[i] * w[i];
  EXPECT_EQ(node.Values(), expected);
}

// What lies outside the image is the zero point, not 0.
TEST(ConvInteger, PadsWithTheZeroPoint) {
  OneNode node("ConvInteger", 10);
  node.Text("auto_pad", "SAME_UPPER");
  node.Input(Numbers(DType::kU8, {1, 1, 3}, {10, 11, 12}));
  node.Input(Numbers(DType::kU8, {1, 1, 3}, {1, 1, 1})).Input(Numbers(DType::kU8, {}, {10}));
  EXPECT_EQ(node.Values(), (Numbers64{1, 3, 3}));
}

TEST(QLinearConv, HasAScaleForEachChannelAndABias) {
  OneNode node("QLinearConv", 10);
  node.Input(Numbers(DType::kU8, {1, 1, 2}, {10, 20})).Input(Numbers(DType::kF32, {}, {0.5}));
  node.Input(Numbers(DType::kU8, {}, {0})).Input(Numbers(DType::kI8, {2, 1, 1}, {1, -2}));
  node.Input(Numbers(DType::kF32, {2}, {1, 2})).Input(Numbers(DType::kI8, {2}, {0, 0}));
  node.Input(Numbers(DType::kF32, {}, {1})).Input(Numbers(DType::kU8, {}, {100}));
  node.Input(Numbers(DType::kI32, {2}, {2, 0}));
  EXPECT_EQ(node.Values(), (Numbers64{106, 111, 80, 60}));
}

TEST(QuantizeLinear, RoundsHalvesToEvenAndSaturates) {
  OneNode node("QuantizeLinear", 13);
  node.Input(Numbers(DType::kF32, {6}, {1, 3, 5, -3, 1e9, -1e9}));
  node.Input(Numbers(DType::kF32, {}, {2})).Input(Numbers(DType::kU8, {}, {10}));
  EXPECT_EQ(node.Values(), (Numbers64{10, 12, 12, 8, 255, 0}));
}

TEST(QuantizeLinear, TheLastBlockMayBeShort) {
  OneNode node("QuantizeLinear", 21);
  node.Integer("block_size", 2).Integer("axis", 0);
  node.Input(Numbers(DType::kF32, {3}, {8, 8, 8})).Input(Numbers(DType::kF32, {2}, {1, 4}));
  EXPECT_EQ(node.Values(), (Numbers64{8, 8, 2}));
}

// 65535 is no f16.
TEST(QuantizeLinear, AddsAZeroPointThatF16DoesNotHold) {
  OneNode node("QuantizeLinear", 21);
  node.Input(Numbers(DType::kF16, {2}, {-4, 1})).Input(Numbers(DType::kF16, {}, {1}));
  node.Input(Numbers(DType::kU16, {}, {65535}));
  EXPECT_EQ(node.Values(), (Numbers64{65531, 65535}));
}

TEST(QuantizeLinear, RefusesScalesThatFitNoAxis) {
  OneNode node("QuantizeLinear", 13);
  node.Input(Numbers(DType::kF32, {2, 3}, Numbers64(6)));
  node.Input(Numbers(DType::kF32, {2}, {1, 2}));
  EXPECT_EQ(node.Refusal(),
            "QuantizeLinear 'n': the scale or zero point has shape [2] for [2,3] with axis 1 and "
            "block_size 0; it must be one number, one an entry of the axis, or one a block");
}

TEST(QuantizeLinear, RefusesTwoTypes) {
  OneNode node("QuantizeLinear", 21);
  node.Integer("output_dtype", onnx::TensorProto::INT8);
  node.Input(Numbers(DType::kF32, {1}, {1})).Input(Numbers(DType::kF32, {}, {1}));
  node.Input(Numbers(DType::kU8, {}, {1}));
  EXPECT_EQ(node.Refusal(),
            "QuantizeLinear 'n': output_dtype is i8 and the zero point is u8; they must be the "
            "same");
}

TEST(DequantizeLinear, OutputDtypeIsTheTypeOfTheProduct) {
  OneNode node("DequantizeLinear", 23);
  node.Integer("output_dtype", onnx::TensorProto::FLOAT16);
  node.Input(Numbers(DType::kI4, {2}, {-8, 7})).Input(Numbers(DType::kF32, {}, {0.25}));
  const Result<Tensor> y = node.Run();
  ASSERT_TRUE(y.ok()) << y.status().message();
  EXPECT_EQ(y->type(), (TensorType{DType::kF16, {2}}));
  EXPECT_EQ(y->at(0), -2);
  EXPECT_EQ(y->at(1), 1.75);
}

TEST(DynamicQuantizeLinear, OfZerosHasNoInfiniteScale) {
  OneNode node("DynamicQuantizeLinear", 11);
  node.Input(Numbers(DType::kF32, {3}, {0, 0, 0}));
  EXPECT_EQ(node.Values(), (Numbers64{0, 0, 0}));
}

}  // namespace
}  // namespace ridge
