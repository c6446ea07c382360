// ONNX converters: arithmetic that takes more than one node: several inputs, limits, mixed types,
// bits.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <optional>

#include "ridge/graph/ops/shared/reduce.h"
#include "ridge/onnx/import/converter.h"

namespace ridge {
namespace {

// op(op(x0, x1), x2) ...
Result<Value> Chain(OnnxNode& n, const char* op) {
  RIDGE_RETURN_IF_ERROR(n.Need(n.input_count()));
  RIDGE_RETURN_IF_ERROR(n.Need(1));
  Value all = n.input(0);
  for (size_t i = 1; i < n.input_count(); ++i) all = n.b().Op(op, {all, n.input(i)});
  return all;
}

Status ConvertChain(OnnxNode& n, const char* op) {
  RIDGE_ASSIGN_OR_RETURN(const Value all, Chain(n, op));
  n.Set(0, all);
  return n.status();
}

// The one number of an input of rank 0 that no training changes.
std::optional<double> ConstantNumber(OnnxNode& n, size_t i) {
  const Tensor* known = n.KnownForGood(i);
  if (known == nullptr || known->type().rank() != 0 || std::isnan(known->at(0))) return {};
  return known->at(0);
}

// Max(x, c), which PyTorch's newer exporter writes for clamp(x, min=c), is a clip: at a tie nothing
// flows, where maximum would pass half.  A constant of rank 0 tells it from maximum of two tensors.
// Min(x, c) likewise.
Status ConvertExtremum(OnnxNode& n, const char* op, const char* limit) {
  for (size_t i = 0; n.input_count() == 2 && i < 2; ++i) {
    RIDGE_RETURN_IF_ERROR(n.Need(2));
    const std::optional<double> number = ConstantNumber(n, i);
    const bool clips = number && IsFloat(n.type(1 - i).dtype) && n.type(0).dtype == n.type(1).dtype;
    if (!clips) continue;
    n.Set(0, n.b().Op("clip", {n.input(1 - i)}, {{limit, *number}}));
    return n.status();
  }
  return ConvertChain(n, op);
}

// Input i with the broadcasting of one number, as rank 0; fails unless it has one element.
Result<Value> OneNumber(OnnxNode& n, size_t i, const char* what) {
  const TensorType type = n.type(i);
  if (type.elements() != 1) {
    return n.Error(fmt::format("{} is {}; it must be one number", what, TypeToString(type)));
  }
  const Value v = n.input(i);
  return type.rank() == 0 ? v : ReshapeExactly(n.b(), v, {});
}

// A limit of Clip: `number` when it is known, else `value`; `present` when there is one at all.
struct Limit {
  bool present = false, known = false;
  double number = 0;
  Value value;
};

Result<Limit> ReadLimit(OnnxNode& n, const char* name, size_t i) {
  Limit limit;
  if (n.opset() < 11) {
    limit.present = limit.known = n.has_attr(name);
    limit.number = n.number(name, 0);
    return limit;
  }
  if (!n.has_input(i)) return limit;
  limit.present = true;
  RIDGE_ASSIGN_OR_RETURN(limit.value, OneNumber(n, i, name));
  if (const Tensor* known = n.Known(i); known != nullptr && known->elements() == 1) {
    limit.known = true;
    limit.number = known->at(0);
  }
  return limit;
}

Value LimitValue(GraphBuilder& b, const Limit& limit, DType dtype) {
  return limit.value.valid() ? limit.value : b.Scalar(dtype, limit.number);
}

// x to the second or third power without a call of pow; invalid for other exponents.
Value SmallPower(OnnxNode& n) {
  const Tensor* exponent = n.Known(1);
  if (exponent == nullptr || exponent->elements() != 1 || n.type(1).rank() > n.type(0).rank())
    return {};
  const double e = exponent->at(0);
  if (!IsFloat(n.type(0).dtype) || (e != 2 && e != 3)) return {};
  const Value square = n.b().Op("square", {n.input(0)});
  return e == 2 ? square : n.b().Mul(square, n.input(0));
}

Status ConvertMax(OnnxNode& n) { return ConvertExtremum(n, "maximum", "min"); }
Status ConvertMin(OnnxNode& n) { return ConvertExtremum(n, "minimum", "max"); }
Status ConvertSum(OnnxNode& n) { return ConvertChain(n, "add"); }

Status ConvertMean(OnnxNode& n) {
  RIDGE_ASSIGN_OR_RETURN(const Value sum, Chain(n, "add"));
  const auto count = static_cast<double>(n.input_count());
  n.Set(0, n.b().Div(sum, n.b().Scalar(n.b().type(sum).dtype, count)));
  return n.status();
}

// Where min > max the result is max, as numpy has it; our clip refuses such limits.
Status ConvertClip(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(1));
  GraphBuilder& b = n.b();
  RIDGE_ASSIGN_OR_RETURN(Limit low, ReadLimit(n, "min", 1));
  RIDGE_ASSIGN_OR_RETURN(Limit high, ReadLimit(n, "max", 2));
  const DType dtype = n.type(0).dtype;
  Value y = n.input(0);
  const bool low_known = !low.present || low.known, high_known = !high.present || high.known;
  AttrMap attrs;
  if (low.present) attrs["min"] = low.number;
  if (high.present) attrs["max"] = high.number;
  const bool ordered = !low.present || !high.present || low.number <= high.number;
  const bool numbers = !std::isnan(low.number) && !std::isnan(high.number);
  if (low_known && high_known && ordered && numbers) {
    if (!attrs.empty()) y = b.Op("clip", {y}, attrs);
  } else {
    if (low.present) y = b.Op("maximum", {y, LimitValue(b, low, dtype)});
    if (high.present) y = b.Op("minimum", {y, LimitValue(b, high, dtype)});
  }
  n.Set(0, y);
  return n.status();
}

// The result has the base's type.  A float exponent of an integer, or a wider one, is computed in
// f64.
Status ConvertPow(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(2));
  GraphBuilder& b = n.b();
  const DType base = n.type(0).dtype, exponent = n.type(1).dtype;
  Value y = SmallPower(n);
  if (!y.valid()) {
    const bool fits = base == exponent || (IsFloat(base) && !IsFloat(exponent));
    const DType in = fits ? base : DType::kF64;
    y = b.Cast(b.Op("pow", {b.Cast(n.input(0), in), b.Cast(n.input(1), in)}), base);
  }
  n.Set(0, y);
  return n.status();
}

Status ConvertMod(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(2));
  const bool sign_of_dividend = n.integer("fmod", 0) != 0;
  n.Set(0, n.b().Op(sign_of_dividend ? "fmod" : "mod", {n.input(0), n.input(1)}));
  return n.status();
}

Status ConvertBitShift(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(2));
  const DType dtype = n.type(0).dtype;
  const std::string direction = n.text("direction", "");
  if (direction == "RIGHT") {
    n.Set(0, n.b().Op("shift_right", {n.input(0), n.input(1)}));
    return n.status();
  }
  if (direction != "LEFT" || !IsInteger(dtype)) {
    return n.Error(
        fmt::format("direction is \"{}\" and X is {}; they must be LEFT or RIGHT and "
                    "an integer",
                    direction, DTypeName(dtype)));
  }
  const AttrMap attrs = {{"bits", int64_t{IntegerBits(dtype)}}};
  n.Set(0, n.b().Op("shift_left", {n.input(0), n.input(1)}, attrs));
  return n.status();
}

// All bits differ from those of a number whose bits are all ones.
Status ConvertBitwiseNot(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(1));
  GraphBuilder& b = n.b();
  const DType dtype = n.type(0).dtype;
  if (!IsInteger(dtype))
    return n.Error(fmt::format("X is {}; it must be an integer", DTypeName(dtype)));
  const double ones = IsSigned(dtype) ? -1 : std::ldexp(1.0, IntegerBits(dtype)) - 1;
  n.Set(0, b.Op("bitwise_xor", {n.input(0), b.Scalar(dtype, ones)}));
  return n.status();
}

constexpr OnnxConverter kTable[] = {
    {"", "BitShift", ConvertBitShift}, {"", "BitwiseNot", ConvertBitwiseNot},
    {"", "Clip", ConvertClip},         {"", "Max", ConvertMax},
    {"", "Mean", ConvertMean},         {"", "Min", ConvertMin},
    {"", "Mod", ConvertMod},           {"", "Pow", ConvertPow},
    {"", "Sum", ConvertSum},
};

}  // namespace

std::span<const OnnxConverter> OnnxPointwiseArithmeticConverters() { return kTable; }

}  // namespace ridge
