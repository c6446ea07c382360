// ONNX converters: one element from one element.  Operators that a record of ours names with
// OpDef::onnx need no converter; here are what takes more types than ours, and predicates.
#include <limits>

#include "ridge/core/small_float.h"
#include "ridge/onnx/import/converter.h"
#include "ridge/onnx/import/converters/shape.h"

namespace ridge {
namespace {

bool IsUnsigned(DType t) { return IsInteger(t) && !IsSigned(t); }

// Numbers without sign are their own absolute values.
Result<Value> ConvertAbs(OnnxNode& n) {
  const Value x = n[0];
  return IsUnsigned(n.type(0).dtype) ? x : Abs(x);
}

// The sign of a number without sign is 1, or 0 for 0.
Result<Value> ConvertSign(OnnxNode& n) {
  GraphBuilder& b = n.b();
  const Value x = n[0];
  const DType dtype = n.type(0).dtype;
  return IsUnsigned(dtype) ? Minimum(x, b.Scalar(dtype, 1)) : Sign(x);
}

// Bools differ.
Result<Value> ConvertXor(OnnxNode& n) {
  const Value a = n[0], b = n[1];
  return NotEqual(a, b);
}

// Types that are only stored, as f32; others as they are.
Value Computable(Value x) { return IsSmallFloat(x.dtype()) ? Cast(x, DType::kF32) : x; }

// NaN alone differs from itself.
Result<Value> ConvertIsNan(OnnxNode& n) {
  const Value x = Computable(n[0]);
  return NotEqual(x, x);
}

Result<Value> ConvertIsInf(OnnxNode& n) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  GraphBuilder& b = n.b();
  Value x = Computable(n[0]);
  const bool negative = n.integer("detect_negative", 1) != 0;
  const bool positive = n.integer("detect_positive", 1) != 0;
  if (!negative && !positive) {
    return OnnxFilled(b, {DType::kBool, x.dims()}, 0);
  }
  if (negative && positive) x = Abs(x);
  const double wanted = positive ? kInfinity : -kInfinity;
  return Equal(x, wanted);
}

constexpr OnnxConverter kTable[] = {
    {"", "Abs", ConvertAbs, 1},   {"", "IsInf", ConvertIsInf, 1}, {"", "IsNaN", ConvertIsNan, 1},
    {"", "Sign", ConvertSign, 1}, {"", "Xor", ConvertXor, 2},
};

}  // namespace

std::span<const OnnxConverter> OnnxPointwiseConverters() { return kTable; }

}  // namespace ridge
