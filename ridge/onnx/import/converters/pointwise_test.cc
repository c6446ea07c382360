#include <cmath>
#include <limits>

#include "ridge/onnx/import/converters/test_one_node.h"

namespace ridge {
namespace {

using Numbers64 = std::vector<double>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

Tensor F32(const Numbers64& values) {
  return Numbers(DType::kF32, {static_cast<int64_t>(values.size())}, values);
}
Tensor F32Scalar(double value) { return Numbers(DType::kF32, {}, {value}); }

OneNode Cast(const Tensor& x, onnx::TensorProto::DataType to) {
  OneNode node("Cast", 25);
  node.Integer("to", to).Input(x);
  return node;
}

TEST(OnnxCast, IntegersKeepTheirLowBits) {
  const Tensor x = Numbers(DType::kI32, {4}, {200, -129, 65536, -1});
  EXPECT_EQ(Cast(x, onnx::TensorProto::INT8).Values(), (Numbers64{-56, 127, 0, -1}));
  EXPECT_EQ(Cast(x, onnx::TensorProto::UINT16).Values(), (Numbers64{200, 65407, 0, 65535}));
  EXPECT_EQ(Cast(x, onnx::TensorProto::INT64).Values(), (Numbers64{200, -129, 65536, -1}));
}

TEST(OnnxCast, FloatsTruncateAndSaturate) {
  const Tensor x = F32({1.9F, -1.9F, 300, kNan});
  EXPECT_EQ(Cast(x, onnx::TensorProto::UINT8).Values(), (Numbers64{1, 0, 255, 0}));
  EXPECT_EQ(Cast(x, onnx::TensorProto::BOOL).Values(), (Numbers64{1, 1, 1, 1}));
}

TEST(OnnxCast, PowersOfTwoRoundAsAsked) {
  const Tensor x = F32({1.1F, 3, 4});
  const auto to = onnx::TensorProto::FLOAT8E8M0;
  EXPECT_EQ(Cast(x, to).Values(), (Numbers64{2, 4, 4}));
  EXPECT_EQ(Cast(x, to).Text("round_mode", "down").Values(), (Numbers64{1, 2, 4}));
  EXPECT_EQ(Cast(x, to).Text("round_mode", "nearest").Values(), (Numbers64{1, 4, 4}));
  EXPECT_EQ(Cast(x, to).Text("round_mode", "away").Refusal(),
            "cast 'cast' (Cast 'n'): round is \"away\"; it must be one of nearest, up, down");
}

TEST(OnnxCast, NeedsATypeThatWeHold) {
  EXPECT_EQ(OneNode("Cast", 13).Input(F32({1})).Refusal(),
            "Cast 'n': has no attribute 'to', an element type");
  EXPECT_EQ(OneNode("Cast", 13).Integer("to", onnx::TensorProto::STRING).Input(F32({1})).Refusal(),
            "Cast 'n': to is 8, STRING; that is no element type we hold");
}

// Doubles would keep 53 of the 64 bits.
TEST(OnnxBitCast, KeepsEveryBit) {
  OneNode node("BitCast", 26);
  node.Integer("to", onnx::TensorProto::INT64).Input(Numbers(DType::kF64, {1}, {1.0 / 3}));
  const Result<Tensor> y = node.Run();
  ASSERT_TRUE(y.ok()) << y.status().message();
  EXPECT_EQ(y->as<int64_t>()[0], 0x3FD5555555555555);
}

TEST(OnnxBitCast, OfPartsOfAByteHasThoseBits) {
  OneNode node("BitCast", 26);
  node.Integer("to", onnx::TensorProto::INT4).Input(Numbers(DType::kU4, {3}, {15, 8, 7}));
  EXPECT_EQ(node.Values(), (Numbers64{-1, -8, 7}));
  OneNode small("BitCast", 26);
  small.Integer("to", onnx::TensorProto::FLOAT4E2M1).Input(Numbers(DType::kI4, {2}, {2, -7}));
  EXPECT_EQ(small.Values(), (Numbers64{1, -0.5}));
}

TEST(OnnxBitCast, RefusesAnotherNumberOfBits) {
  OneNode node("BitCast", 26);
  node.Integer("to", onnx::TensorProto::INT8).Input(Numbers(DType::kU4, {1}, {1}));
  EXPECT_EQ(node.Refusal(),
            "BitCast 'n': the input is u4 and to is i8; they must have as many bits");
}

// numpy: the upper limit wins.
TEST(OnnxClip, LimitsMayBeKnownOrNot) {
  for (const bool known : {false, true}) {
    OneNode node("Clip", 13);
    node.Input(F32({-5, 0.5, 9, kNan})).Input(F32Scalar(0), known).Input(F32Scalar(1), known);
    const Numbers64 y = node.Values();
    EXPECT_EQ(Numbers64(y.begin(), y.begin() + 3), (Numbers64{0, 0.5, 1}));
    EXPECT_TRUE(std::isnan(y[3]));
    OneNode crossed("Clip", 13);
    crossed.Input(F32({-5, 0.5})).Input(F32Scalar(3), known).Input(F32Scalar(2), known);
    EXPECT_EQ(crossed.Values(), (Numbers64{2, 2}));
  }
}

TEST(OnnxClip, LimitsWereAttributesBefore11) {
  EXPECT_EQ(OneNode("Clip", 9).Number("max", 2).Input(F32({-5, 9})).Values(), (Numbers64{-5, 2}));
  EXPECT_EQ(OneNode("Clip", 9).Input(F32({-5, 9})).Values(), (Numbers64{-5, 9}));
}

TEST(OnnxClip, LimitsAreSingleNumbers) {
  OneNode node("Clip", 13);
  node.Input(F32({1, 2})).Input(F32({0, 1}));
  EXPECT_EQ(node.Refusal(), "Clip 'n': min is f32[2]; it must be one number");
}

TEST(OnnxPow, HasTheTypeOfTheBase) {
  OneNode node("Pow", 15);
  node.Input(Numbers(DType::kI32, {3}, {4, 9, 2})).Input(F32({0.5, 0.5, 10}));
  const Result<Tensor> y = node.Run();
  ASSERT_TRUE(y.ok()) << y.status().message();
  EXPECT_EQ(y->type(), (TensorType{DType::kI32, {3}}));
  EXPECT_EQ(node.Values(), (Numbers64{2, 3, 1024}));
}

TEST(OnnxPow, SpecialCasesAreNumpys) {
  OneNode node("Pow", 15);
  node.Input(F32({0, -8, kNan, 1, 0, -2, kInf})).Input(F32({0, 1.0 / 3, 0, kNan, -1, 3, -1}));
  const Numbers64 y = node.Values();
  EXPECT_TRUE(std::isnan(y[1]));
  EXPECT_EQ((Numbers64{y[0], y[2], y[3], y[4], y[5], y[6]}), (Numbers64{1, 1, 1, kInf, -8, 0}));
}

// A cube of a known exponent is made of products, and broadcasts as the exponent does.
TEST(OnnxPow, KnownSmallExponents) {
  for (const double e : {2.0, 3.0, 0.5}) {
    OneNode node("Pow", 15);
    node.Input(F32({2, -3})).Input(Numbers(DType::kF32, {1, 1}, {e}), /*known=*/true);
    const Result<Tensor> y = node.Run();
    ASSERT_TRUE(y.ok()) << y.status().message();
    EXPECT_EQ(y->type().dims, (Dims{1, 2}));
    EXPECT_FLOAT_EQ(static_cast<float>(y->at(0)), static_cast<float>(std::pow(2.0, e)));
  }
}

TEST(OnnxMod, SignsArePythonsOrCs) {
  const Tensor x = F32({-4.5, 4.5}), m = F32({2, -2});
  EXPECT_EQ(OneNode("Mod", 13).Input(x).Input(m).Values(), (Numbers64{1.5, -1.5}));
  EXPECT_EQ(OneNode("Mod", 13).Integer("fmod", 1).Input(x).Input(m).Values(),
            (Numbers64{-0.5, 0.5}));
}

TEST(OnnxBits, NotAndShifts) {
  const Tensor x = Numbers(DType::kU8, {3}, {0, 255, 129}), s = Numbers(DType::kU8, {3}, {1, 9, 1});
  EXPECT_EQ(OneNode("BitwiseNot", 18).Input(x).Values(), (Numbers64{255, 0, 126}));
  EXPECT_EQ(OneNode("BitwiseNot", 18).Input(Numbers(DType::kI16, {2}, {0, -7})).Values(),
            (Numbers64{-1, 6}));
  EXPECT_EQ(OneNode("BitShift", 11).Text("direction", "LEFT").Input(x).Input(s).Values(),
            (Numbers64{0, 0, 2}));
  EXPECT_EQ(OneNode("BitShift", 11).Text("direction", "RIGHT").Input(x).Input(s).Values(),
            (Numbers64{0, 0, 64}));
  EXPECT_EQ(OneNode("BitShift", 11).Input(x).Input(s).Refusal(),
            "BitShift 'n': direction is \"\" and X is u8; they must be LEFT or RIGHT and an "
            "integer");
}

TEST(OnnxIsInf, DetectsTheSignsAskedFor) {
  const Tensor x = F32({kInf, -kInf, 1, kNan});
  EXPECT_EQ(OneNode("IsInf", 20).Input(x).Values(), (Numbers64{1, 1, 0, 0}));
  EXPECT_EQ(OneNode("IsInf", 20).Integer("detect_positive", 0).Input(x).Values(),
            (Numbers64{0, 1, 0, 0}));
  EXPECT_EQ(OneNode("IsInf", 20)
                .Integer("detect_positive", 0)
                .Integer("detect_negative", 0)
                .Input(x)
                .Values(),
            (Numbers64{0, 0, 0, 0}));
  EXPECT_EQ(OneNode("IsNaN", 20).Input(x).Values(), (Numbers64{0, 0, 0, 1}));
}

TEST(OnnxMean, TakesOneInputOrMany) {
  EXPECT_EQ(OneNode("Mean", 13).Input(F32({3})).Values(), (Numbers64{3}));
  EXPECT_EQ(OneNode("Mean", 13).Input(F32({1, 2})).Input(F32({3})).Input(F32({5})).Values(),
            (Numbers64{3, 10.0F / 3}));
  EXPECT_EQ(OneNode("Max", 13).Input(F32({1, 7})).Absent().Input(F32({3})).Refusal(),
            "Max 'n': has no input 1; Max needs 3");
}

TEST(OnnxUnsigned, HaveAbsolutesAndSigns) {
  const Tensor x = Numbers(DType::kU16, {3}, {0, 1, 9});
  EXPECT_EQ(OneNode("Abs", 13).Input(x).Values(), (Numbers64{0, 1, 9}));
  EXPECT_EQ(OneNode("Sign", 13).Input(x).Values(), (Numbers64{0, 1, 1}));
  EXPECT_EQ(OneNode("Relu", 14).Input(Numbers(DType::kI8, {2}, {-3, 3})).Values(),
            (Numbers64{0, 3}));
}

}  // namespace
}  // namespace ridge
