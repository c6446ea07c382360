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
  Value all = n[0];
  for (size_t i = 1; i < n.input_count(); ++i) all = Op(op, {all, n[i]});
  return all;
}

Result<Value> ConvertChain(OnnxNode& n, const char* op) { return Chain(n, op); }

// The one number of an input of rank 0 that no training changes.
std::optional<double> FixedNumber(OnnxNode& n, size_t i) {
  const Tensor* known = n.FixedInput(i);
  if (known == nullptr || known->type().rank() != 0 || std::isnan(known->at(0))) return {};
  return known->at(0);
}

// Max(x, c), which PyTorch's newer exporter writes for clamp(x, min=c), is a clip: at a tie nothing
// flows, where maximum would pass half.  A constant of rank 0 tells it from maximum of two tensors.
// Min(x, c) likewise.
Result<Value> ConvertExtremum(OnnxNode& n, const char* op, const char* limit) {
  for (size_t i = 0; n.input_count() == 2 && i < 2; ++i) {
    RIDGE_RETURN_IF_ERROR(n.Need(2));
    const std::optional<double> number = FixedNumber(n, i);
    const bool clips = number && IsFloat(n.type(1 - i).dtype) && n.type(0).dtype == n.type(1).dtype;
    if (!clips) continue;
    return Op("clip", {n[1 - i]}, {{limit, *number}});
  }
  return ConvertChain(n, op);
}

// Input i with the broadcasting of one number, as rank 0; fails unless it has one element.
Result<Value> OneNumber(OnnxNode& n, size_t i, const char* what) {
  const TensorType type = n.type(i);
  if (type.elements() != 1) {
    return n.Error(fmt::format("{} is {}; it must be one number", what, TypeToString(type)));
  }
  const Value v = n[i];
  return type.rank() == 0 ? v : ReshapeExactly(v, {});
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
  if (const Tensor* known = n.ConstantInput(i); known != nullptr && known->elements() == 1) {
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
  const Tensor* exponent = n.ConstantInput(1);
  if (exponent == nullptr || exponent->elements() != 1 || n.type(1).rank() > n.type(0).rank())
    return {};
  const double e = exponent->at(0);
  if (!IsFloat(n.type(0).dtype) || (e != 2 && e != 3)) return {};
  const Value square = Square(n[0]);
  return e == 2 ? square : square * n[0];
}

Result<Value> ConvertMax(OnnxNode& n) { return ConvertExtremum(n, "maximum", "min"); }
Result<Value> ConvertMin(OnnxNode& n) { return ConvertExtremum(n, "minimum", "max"); }
Result<Value> ConvertSum(OnnxNode& n) { return ConvertChain(n, "add"); }

Result<Value> ConvertMean(OnnxNode& n) {
  RIDGE_ASSIGN_OR_RETURN(const Value sum, Chain(n, "add"));
  const auto count = static_cast<double>(n.input_count());
  return sum / count;
}

// Where min > max the result is max, as numpy has it; our clip refuses such limits.
Result<Value> ConvertClip(OnnxNode& n) {
  GraphBuilder& b = n.b();
  RIDGE_ASSIGN_OR_RETURN(Limit low, ReadLimit(n, "min", 1));
  RIDGE_ASSIGN_OR_RETURN(Limit high, ReadLimit(n, "max", 2));
  const DType dtype = n.type(0).dtype;
  Value y = n[0];
  const bool low_known = !low.present || low.known, high_known = !high.present || high.known;
  AttrMap attrs;
  if (low.present) attrs["min"] = low.number;
  if (high.present) attrs["max"] = high.number;
  const bool ordered = !low.present || !high.present || low.number <= high.number;
  const bool numbers = !std::isnan(low.number) && !std::isnan(high.number);
  if (low_known && high_known && ordered && numbers) {
    if (!attrs.empty()) y = Op("clip", {y}, attrs);
  } else {
    if (low.present) y = Maximum(y, LimitValue(b, low, dtype));
    if (high.present) y = Minimum(y, LimitValue(b, high, dtype));
  }
  return y;
}

// The result has the base's type.  A float exponent of an integer, or a wider one, is computed in
// f64.
Result<Value> ConvertPow(OnnxNode& n) {
  const DType base = n.type(0).dtype, exponent = n.type(1).dtype;
  Value y = SmallPower(n);
  if (!y.valid()) {
    const bool fits = base == exponent || (IsFloat(base) && !IsFloat(exponent));
    const DType in = fits ? base : DType::kF64;
    const Value x = Cast(n[0], in);
    y = Cast(Pow(x, Cast(n[1], in)), base);
  }
  return y;
}

Result<Value> ConvertMod(OnnxNode& n) {
  const bool sign_of_dividend = n.integer("fmod", 0) != 0;
  return Op(sign_of_dividend ? "fmod" : "mod", {n[0], n[1]});
}

Result<Value> ConvertBitShift(OnnxNode& n) {
  const DType dtype = n.type(0).dtype;
  const std::string direction = n.text("direction", "");
  if (direction == "RIGHT") {
    return Op("shift_right", {n[0], n[1]});
  }
  if (direction != "LEFT" || !IsInteger(dtype)) {
    return n.Error(
        fmt::format("direction is \"{}\" and X is {}; they must be LEFT or RIGHT and "
                    "an integer",
                    direction, DTypeName(dtype)));
  }
  const AttrMap attrs = {{"bits", IntegerBits(dtype)}};
  return Op("shift_left", {n[0], n[1]}, attrs);
}

// All bits differ from those of a number whose bits are all ones.
Result<Value> ConvertBitwiseNot(OnnxNode& n) {
  GraphBuilder& b = n.b();
  const DType dtype = n.type(0).dtype;
  if (!IsInteger(dtype))
    return n.Error(fmt::format("X is {}; it must be an integer", DTypeName(dtype)));
  const double ones = IsSigned(dtype) ? -1 : std::ldexp(1.0, IntegerBits(dtype)) - 1;
  return Op("bitwise_xor", {n[0], b.Scalar(dtype, ones)});
}

constexpr OnnxConverter kTable[] = {
    {"", "BitShift", ConvertBitShift, 2},
    {"", "BitwiseNot", ConvertBitwiseNot, 1},
    {"", "Clip", ConvertClip, 1},
    {"", "Max", ConvertMax},
    {"", "Mean", ConvertMean},
    {"", "Min", ConvertMin},
    {"", "Mod", ConvertMod, 2},
    {"", "Pow", ConvertPow, 2},
    {"", "Sum", ConvertSum},
};

}  // namespace

std::span<const OnnxConverter> OnnxPointwiseArithmeticConverters() { return kTable; }

}  // namespace ridge
