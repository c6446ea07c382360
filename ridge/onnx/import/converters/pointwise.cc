// ONNX converters: one element from one element: arithmetic, comparison, logic, bits, casts,
// activations.  Here: what is one node of ours.
#include "ridge/onnx/import/converters/pointwise.h"

#include <fmt/format.h>

#include <array>
#include <limits>

#include "ridge/core/small_float.h"
#include "ridge/graph/ops/shared/reduce.h"
#include "ridge/onnx/import/converters/shape.h"

namespace ridge {
namespace {

struct Plain {
  std::string_view onnx;
  const char* ours;
  size_t inputs;
};
// In order of name.  Xor of bools is that they differ.
constexpr auto kPlain = std::to_array<Plain>({
    {"Acos", "acos", 1},
    {"Acosh", "acosh", 1},
    {"Add", "add", 2},
    {"And", "logical_and", 2},
    {"Asin", "asin", 1},
    {"Asinh", "asinh", 1},
    {"Atan", "atan", 1},
    {"Atanh", "atanh", 1},
    {"BitwiseAnd", "bitwise_and", 2},
    {"BitwiseOr", "bitwise_or", 2},
    {"BitwiseXor", "bitwise_xor", 2},
    {"Ceil", "ceil", 1},
    {"Cos", "cos", 1},
    {"Cosh", "cosh", 1},
    {"Div", "div", 2},
    {"Equal", "equal", 2},
    {"Erf", "erf", 1},
    {"Exp", "exp", 1},
    {"Floor", "floor", 1},
    {"Greater", "greater", 2},
    {"GreaterOrEqual", "greater_equal", 2},
    {"HardSwish", "hard_swish", 1},
    {"Less", "less", 2},
    {"LessOrEqual", "less_equal", 2},
    {"Log", "log", 1},
    {"Mish", "mish", 1},
    {"Mul", "mul", 2},
    {"Neg", "neg", 1},
    {"Not", "logical_not", 1},
    {"Or", "logical_or", 2},
    {"Reciprocal", "reciprocal", 1},
    {"Round", "round", 1},
    {"Sigmoid", "sigmoid", 1},
    {"Sin", "sin", 1},
    {"Sinh", "sinh", 1},
    {"Softplus", "softplus", 1},
    {"Sqrt", "sqrt", 1},
    {"Sub", "sub", 2},
    {"Tan", "tan", 1},
    {"Tanh", "tanh", 1},
    {"Xor", "not_equal", 2},
});

Status ConvertPlain(OnnxNode& n) {
  for (const Plain& plain : kPlain) {
    if (plain.onnx != n.op_type()) continue;
    RIDGE_RETURN_IF_ERROR(n.Need(plain.inputs));
    std::vector<Value> inputs;
    for (size_t i = 0; i < plain.inputs; ++i) inputs.push_back(n.input(i));
    n.Set(0, n.b().Op(plain.ours, std::move(inputs)));
    return n.status();
  }
  return n.Unsupported("is not a pointwise operator");
}

bool IsUnsigned(DType t) { return IsInteger(t) && !IsSigned(t); }

// Numbers without sign are their own absolute values.
Status ConvertAbs(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(1));
  const Value x = n.input(0);
  n.Set(0, IsUnsigned(n.type(0).dtype) ? x : n.b().Op("abs", {x}));
  return n.status();
}

// The sign of a number without sign is 1, or 0 for 0.
Status ConvertSign(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(1));
  GraphBuilder& b = n.b();
  const Value x = n.input(0);
  const DType dtype = n.type(0).dtype;
  n.Set(0, IsUnsigned(dtype) ? b.Op("minimum", {x, b.Scalar(dtype, 1)}) : b.Op("sign", {x}));
  return n.status();
}

Status ConvertWhere(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(3));
  n.Set(0, n.b().Where(n.input(0), n.input(1), n.input(2)));
  return n.status();
}

// NaN alone differs from itself.
Status ConvertIsNan(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(1));
  const Value x = OnnxComputable(n.b(), n.input(0));
  n.Set(0, n.b().Op("not_equal", {x, x}));
  return n.status();
}

Status ConvertIsInf(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(1));
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  GraphBuilder& b = n.b();
  Value x = OnnxComputable(b, n.input(0));
  const bool negative = n.integer("detect_negative", 1) != 0;
  const bool positive = n.integer("detect_positive", 1) != 0;
  if (!n.ok()) return n.status();
  if (!negative && !positive) {
    n.Set(0, OnnxFilled(b, {DType::kBool, b.dims(x)}, 0));
    return n.status();
  }
  if (negative && positive) x = b.Op("abs", {x});
  const double wanted = positive ? kInfinity : -kInfinity;
  n.Set(0, b.Op("equal", {x, b.Scalar(b.type(x).dtype, wanted)}));
  return n.status();
}

constexpr OnnxConverter kTable[] = {
    {"", "Abs", ConvertAbs},
    {"", "Acos", ConvertPlain},
    {"", "Acosh", ConvertPlain},
    {"", "Add", ConvertPlain},
    {"", "And", ConvertPlain},
    {"", "Asin", ConvertPlain},
    {"", "Asinh", ConvertPlain},
    {"", "Atan", ConvertPlain},
    {"", "Atanh", ConvertPlain},
    {"", "BitCast", ConvertBitCast},
    {"", "BitShift", ConvertBitShift},
    {"", "BitwiseAnd", ConvertPlain},
    {"", "BitwiseNot", ConvertBitwiseNot},
    {"", "BitwiseOr", ConvertPlain},
    {"", "BitwiseXor", ConvertPlain},
    {"", "Cast", ConvertCast},
    {"", "CastLike", ConvertCastLike},
    {"", "Ceil", ConvertPlain},
    {"", "Celu", ConvertCelu},
    {"", "Clip", ConvertClip},
    {"", "Cos", ConvertPlain},
    {"", "Cosh", ConvertPlain},
    {"", "Div", ConvertPlain},
    {"", "Elu", ConvertElu},
    {"", "Equal", ConvertPlain},
    {"", "Erf", ConvertPlain},
    {"", "Exp", ConvertPlain},
    {"", "Floor", ConvertPlain},
    {"", "Gelu", ConvertGelu},
    {"", "Greater", ConvertPlain},
    {"", "GreaterOrEqual", ConvertPlain},
    {"", "HardSigmoid", ConvertHardSigmoid},
    {"", "HardSwish", ConvertPlain},
    {"", "IsInf", ConvertIsInf},
    {"", "IsNaN", ConvertIsNan},
    {"", "LeakyRelu", ConvertLeakyRelu},
    {"", "Less", ConvertPlain},
    {"", "LessOrEqual", ConvertPlain},
    {"", "Log", ConvertPlain},
    {"", "Max", ConvertMax},
    {"", "Mean", ConvertMean},
    {"", "Min", ConvertMin},
    {"", "Mish", ConvertPlain},
    {"", "Mod", ConvertMod},
    {"", "Mul", ConvertPlain},
    {"", "Neg", ConvertPlain},
    {"", "Not", ConvertPlain},
    {"", "Or", ConvertPlain},
    {"", "PRelu", ConvertPRelu},
    {"", "Pow", ConvertPow},
    {"", "Reciprocal", ConvertPlain},
    {"", "Relu", ConvertRelu},
    {"", "Round", ConvertPlain},
    {"", "Selu", ConvertSelu},
    {"", "Shrink", ConvertShrink},
    {"", "Sigmoid", ConvertPlain},
    {"", "Sign", ConvertSign},
    {"", "Sin", ConvertPlain},
    {"", "Sinh", ConvertPlain},
    {"", "Softplus", ConvertPlain},
    {"", "Softsign", ConvertSoftsign},
    {"", "Sqrt", ConvertPlain},
    {"", "Sub", ConvertPlain},
    {"", "Sum", ConvertSum},
    {"", "Swish", ConvertSwish},
    {"", "Tan", ConvertPlain},
    {"", "Tanh", ConvertPlain},
    {"", "ThresholdedRelu", ConvertThresholdedRelu},
    {"", "Where", ConvertWhere},
    {"", "Xor", ConvertPlain},
};

}  // namespace

std::span<const OnnxConverter> OnnxPointwiseConverters() { return kTable; }

Result<Value> OnnxOneNumber(OnnxNode& n, size_t i, const char* what) {
  const TensorType type = n.type(i);
  if (type.elements() != 1) {
    return n.Error(fmt::format("{} is {}; it must be one number", what, TypeToString(type)));
  }
  const Value v = n.input(i);
  return type.rank() == 0 ? v : ReshapeExactly(n.b(), v, {});
}

Value OnnxComputable(GraphBuilder& b, Value x) {
  return IsSmallFloat(b.type(x).dtype) ? b.Cast(x, DType::kF32) : x;
}

}  // namespace ridge
