// ONNX converters: quantized arithmetic, composed of casts, products and roundings.
//
// The gradient of a rounding is zero, so nothing flows through a quantization to what it rounds;
// scales of a dequantization are trained as they are.
#include "ridge/onnx/import/converters/quantize.h"

#include <fmt/format.h>

#include "ridge/core/small_float.h"
#include "ridge/onnx/import/converters/shape.h"

namespace ridge {
namespace {

// An attribute that says nothing when it is 0.
Result<DType> OptionalDType(OnnxNode& n, const char* name, DType fallback) {
  if (n.integer(name, 0) == 0) return fallback;
  return OnnxDTypeAttr(n, name, fallback);
}

// What arithmetic on a scale of this type is done in.
DType FloatOf(DType t) { return IsFloat(t) ? t : DType::kF32; }

Status WrongScale(const OnnxNode& n, const Dims& scale, const Dims& x, int64_t axis,
                  int64_t block) {
  return n.Error(
      fmt::format("the scale or zero point has shape {} for {} with axis {} and "
                  "block_size {}; it must be one number, one an entry of the axis, or "
                  "one a block",
                  DimsToString(scale), DimsToString(x), axis, block));
}

// [.., S, ..] -> [.., D, ..]: each number `block` times along the axis, the last block cut off.
Result<Value> SpreadBlocks(OnnxNode& n, Value v, const Dims& dims, size_t axis, int64_t block) {
  const Dims blocks = v.dims();
  Dims wanted = dims;
  wanted[axis] = dims[axis] / block + (dims[axis] % block != 0 ? 1 : 0);
  if (blocks != wanted) return WrongScale(n, blocks, dims, static_cast<int64_t>(axis), block);
  const auto at = static_cast<std::ptrdiff_t>(axis);
  Dims apart = blocks, repeated = blocks, joined = blocks;
  apart.insert(apart.begin() + at + 1, 1);
  repeated.insert(repeated.begin() + at + 1, block);
  joined[axis] *= block;
  v = ReshapeExactly(Expand(ReshapeExactly(v, apart), repeated), joined);
  if (joined[axis] == dims[axis]) return v;
  return Slice(v, static_cast<int64_t>(axis), 0, dims[axis], 1);
}

// Input i over x [dims], by the attributes `axis` and `block_size`.
Result<Value> SpreadScale(OnnxNode& n, size_t i, const Dims& dims) {
  const Value v = n[i];
  if (!n.ok()) return n.status();
  const Dims given = v.dims();
  const int64_t block = n.integer("block_size", 0), axis_attr = n.integer("axis", 1);
  if (given.size() <= 1 && v.type().elements() == 1) return OnnxScalarOrSame(v);
  RIDGE_ASSIGN_OR_RETURN(const int64_t axis, n.Axis(axis_attr, static_cast<int>(dims.size())));
  const auto at = static_cast<size_t>(axis);
  if (block > 0 && block <= dims[at] && given.size() == dims.size())
    return SpreadBlocks(n, v, dims, at, block);
  if (block > 0 || given.size() != 1 || given[0] != dims[at])
    return WrongScale(n, given, dims, axis, block);
  Dims wide(dims.size(), 1);
  wide[at] = dims[at];
  return ReshapeExactly(v, wide);
}

Result<DType> QuantizedType(OnnxNode& n) {
  DType to = n.has_input(2) ? n.type(2).dtype : DType::kU8;
  RIDGE_ASSIGN_OR_RETURN(const DType asked, OptionalDType(n, "output_dtype", to));
  if (n.has_input(2) && asked != to) {
    return n.Error(fmt::format("output_dtype is {} and the zero point is {}; they must be the same",
                               DTypeName(asked), DTypeName(to)));
  }
  to = asked;
  if (IsInteger(to) || IsSmallFloat(to)) return to;
  return n.Error(fmt::format("quantizes to {}; it must be an integer or a float of 8 or 4 bits",
                             DTypeName(to)));
}

// Integers: round(x / scale) + zero point.  The sum is made in f32 at least: f16 has no 65535.
Result<Value> QuantizeInteger(OnnxNode& n, Value quotient, const Dims& dims) {
  const Value rounded = Round(quotient);
  if (OnnxIsZero(n, 2)) return rounded;
  const DType sum = quotient.dtype() == DType::kF64 ? DType::kF64 : DType::kF32;
  RIDGE_ASSIGN_OR_RETURN(const Value zero_point, SpreadScale(n, 2, dims));
  const Value zero = Cast(zero_point, sum);
  return Cast(rounded, sum) + zero;
}

Result<Value> ConvertQuantizeLinear(OnnxNode& n) {
  const Dims dims = n.dims(0);
  RIDGE_ASSIGN_OR_RETURN(const DType to, QuantizedType(n));
  RIDGE_ASSIGN_OR_RETURN(const DType asked, OptionalDType(n, "precision", n.type(1).dtype));
  const DType in = FloatOf(asked);
  RIDGE_ASSIGN_OR_RETURN(const Value scale, SpreadScale(n, 1, dims));
  const Value divisor = Cast(scale, in);
  Value y = Cast(n[0], in) / divisor;
  AttrMap attrs = {{"to", to}};
  if (IsInteger(to)) {
    RIDGE_ASSIGN_OR_RETURN(y, QuantizeInteger(n, y, dims));
  } else if (to == DType::kF4E2M1 && !OnnxIsZero(n, 2)) {
    RIDGE_ASSIGN_OR_RETURN(const Value zero_point, SpreadScale(n, 2, dims));
    y = y + Cast(zero_point, in);
  } else if (n.integer("saturate", 1) == 0) {
    attrs["saturate"] = 0;
  }
  return Op("cast", {y}, attrs);
}

Result<Value> ConvertDequantizeLinear(OnnxNode& n) {
  const Dims dims = n.dims(0);
  RIDGE_ASSIGN_OR_RETURN(const DType to,
                         OptionalDType(n, "output_dtype", FloatOf(n.type(1).dtype)));
  if (!IsFloat(to)) return n.Error(fmt::format("gives {}; it must be a float", DTypeName(to)));
  const DType in = to == DType::kF64 ? DType::kF64 : DType::kF32;
  Value x = Cast(n[0], in);
  if (!OnnxIsZero(n, 2)) {
    RIDGE_ASSIGN_OR_RETURN(const Value zero_point, SpreadScale(n, 2, dims));
    x = x - Cast(zero_point, in);
  }
  RIDGE_ASSIGN_OR_RETURN(const Value scale, SpreadScale(n, 1, dims));
  return Cast(x * Cast(scale, in), to);
}

// scale = (max(x, 0) - min(x, 0)) / 255, the zero point is where 0 comes to lie.
Status ConvertDynamicQuantizeLinear(OnnxNode& n) {
  GraphBuilder& b = n.b();
  const Value x = n[0];
  const DType dtype = n.type(0).dtype;
  const Value zero = b.Scalar(dtype, 0);
  const AttrMap all = {{"axes", {}}, {"keep_dims", 0}};
  const Value high = Maximum(Op("reduce_max", {x}, all), zero);
  const Value low = Minimum(Op("reduce_min", {x}, all), zero);
  const Value range = high - low;
  const Value flat = Equal(range, zero);
  const Value steps = b.Scalar(dtype, 255);
  const Value scale = Where(flat, ScalarLike(range, 1), range) / steps;
  const AttrMap byte = {{"min", 0.0}, {"max", 255.0}};
  const Value zero_point = Round(Op("clip", {-low / scale}, byte));
  const Value y = Round(x / scale) + zero_point;
  n.Set(0, Cast(y, DType::kU8));
  n.Set(1, scale);
  n.Set(2, Cast(zero_point, DType::kU8));
  return n.status();
}

constexpr OnnxConverter kTable[] = {
    {"", "ConvInteger", ConvertConvInteger, 2},
    {"", "DequantizeLinear", ConvertDequantizeLinear, 2},
    {"", "DynamicQuantizeLinear", ConvertDynamicQuantizeLinear, 1},
    {"", "MatMulInteger", ConvertMatMulInteger, 2},
    {"", "QLinearConv", ConvertQLinearConv, 8},
    {"", "QLinearMatMul", ConvertQLinearMatMul, 8},
    {"", "QuantizeLinear", ConvertQuantizeLinear, 2},
};

}  // namespace

std::span<const OnnxConverter> OnnxQuantizeConverters() { return kTable; }

Value OnnxScalarOrSame(Value v) { return v.type().elements() == 1 ? ReshapeExactly(v, {}) : v; }

bool OnnxIsZero(OnnxNode& n, size_t i) {
  if (!n.has_input(i)) return true;
  const Tensor* known = n.ConstantInput(i);
  if (known == nullptr) return false;
  for (int64_t k = 0; k < known->elements(); ++k) {
    if (known->at(k) != 0) return false;
  }
  return true;
}

Result<Value> OnnxSpreadInput(OnnxNode& n, size_t i, const Dims& dims, OnnxSpread spread) {
  const Value given = n[i];
  const Value v = spread(OnnxScalarOrSame(given), dims);
  const Result<Dims> both = BroadcastDims(v.dims(), dims);
  if (both.ok() && *both == dims) return v;
  return n.Error(
      fmt::format("input {} has shape {}; it must be one number or one for each row "
                  "or channel of {}",
                  i, DimsToString(given.dims()), DimsToString(dims)));
}

Result<Value> OnnxCentered(OnnxNode& n, size_t x, size_t zero_point, OnnxSpread spread) {
  const Value wide = Cast(n[x], DType::kF32);
  if (OnnxIsZero(n, zero_point)) return wide;
  RIDGE_ASSIGN_OR_RETURN(const Value zero, OnnxSpreadInput(n, zero_point, n.dims(x), spread));
  return wide - Cast(zero, DType::kF32);
}

Result<Value> OnnxRequantized(OnnxNode& n, Value product, Value scale, size_t y_scale,
                              DType fallback) {
  const OnnxSpread same = [](Value v, const Dims&) { return v; };
  const Dims dims = product.dims();
  RIDGE_ASSIGN_OR_RETURN(const Value divisor, OnnxSpreadInput(n, y_scale, dims, same));
  const Value factor = scale / Cast(divisor, DType::kF32);
  const Value wide_factor = Cast(factor, DType::kF64);
  Value y = Cast(product, DType::kF64) * wide_factor;
  const bool has_zero_point = n.has_input(y_scale + 1);
  if (has_zero_point) {
    RIDGE_ASSIGN_OR_RETURN(const Value zero, OnnxSpreadInput(n, y_scale + 1, dims, same));
    y = y + Cast(zero, DType::kF64);
  }
  const DType to = has_zero_point ? n.type(y_scale + 1).dtype : fallback;
  return Cast(IsInteger(to) ? Round(y) : y, to);
}

}  // namespace ridge
