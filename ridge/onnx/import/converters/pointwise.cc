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

// Bools differ.
Status ConvertXor(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(2));
  n.Set(0, n.b().Op("not_equal", {n.input(0), n.input(1)}));
  return n.status();
}

// Types that are only stored, as f32; others as they are.
Value Computable(GraphBuilder& b, Value x) {
  return IsSmallFloat(b.type(x).dtype) ? b.Cast(x, DType::kF32) : x;
}

// NaN alone differs from itself.
Status ConvertIsNan(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(1));
  const Value x = Computable(n.b(), n.input(0));
  n.Set(0, n.b().Op("not_equal", {x, x}));
  return n.status();
}

Status ConvertIsInf(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(1));
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  GraphBuilder& b = n.b();
  Value x = Computable(b, n.input(0));
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
    {"", "Abs", ConvertAbs},   {"", "IsInf", ConvertIsInf}, {"", "IsNaN", ConvertIsNan},
    {"", "Sign", ConvertSign}, {"", "Xor", ConvertXor},
};

}  // namespace

std::span<const OnnxConverter> OnnxPointwiseConverters() { return kTable; }

}  // namespace ridge
