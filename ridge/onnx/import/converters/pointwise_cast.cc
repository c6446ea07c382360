// ONNX converters: casts.  To a narrower integer ONNX drops the high bits where ours saturates by
// default; what a float out of range becomes is left open there, and saturates here.  Only for
// integers of 4 and 2 bits ONNX's own cases drop bits of floats too.
#include <fmt/format.h>

#include "ridge/core/small_float.h"
#include "ridge/onnx/import/converter.h"
#include "ridge/onnx/import/converters/shape.h"

namespace ridge {
namespace {

bool DropsBits(DType from, DType to) {
  if (!IsInteger(to)) return false;
  if (!IsInteger(from)) return from != DType::kBool && IntegerBits(to) <= 4;
  const int sign = IsSigned(to) && !IsSigned(from) ? 1 : 0;
  const bool loses_sign = IsSigned(from) && !IsSigned(to);
  return loses_sign || IntegerBits(from) + sign > IntegerBits(to);
}

// Bits of 4 and 2 lie in a byte: a signed number's sign fills it, so the bytes of two types differ
// though the bits are the same.
bool IsPartOfAByte(DType t) { return t == DType::kF4E2M1 || (IsInteger(t) && IntegerBits(t) < 8); }

Value LowBits(Value x, DType to) {
  const AttrMap attrs = {{"to", to}, {"saturate", 0}};
  return x.dtype() == to ? x : Op("cast", {x}, attrs);
}

// The same bits without sign: 4 bits of f4e2m1 are those of a u4.
DType UnsignedOf(DType t) {
  if (t == DType::kI2) return DType::kU2;
  return t == DType::kI4 ? DType::kU4 : t;
}

int BitsOf(DType t) {
  if (t == DType::kF4E2M1) return 4;
  return IsInteger(t) ? IntegerBits(t) : static_cast<int>(8 * BytesPerElement(t));
}

// x as ONNX's Cast stores it; `saturate` and `round_mode` are those of the node.
Value CastAsOnnx(OnnxNode& n, Value x, DType to) {
  const DType from = x.dtype();
  if (from == to) return x;
  AttrMap attrs = {{"to", to}};
  const bool is_f8 = IsSmallFloat(to) && to != DType::kF4E2M1;
  const bool keeps_low_bits = DropsBits(from, to);
  if (keeps_low_bits || (is_f8 && n.integer("saturate", 1) == 0)) attrs["saturate"] = 0;
  if (to == DType::kF8E8M0) attrs["round"] = n.text("round_mode", "up");
  return Op("cast", {x}, attrs);
}

Result<Value> ConvertCast(OnnxNode& n) {
  if (!n.has_attr("to")) return n.Error("has no attribute 'to', an element type");
  RIDGE_ASSIGN_OR_RETURN(const DType to, OnnxDTypeAttr(n, "to", DType::kF32));
  return CastAsOnnx(n, n[0], to);
}

Result<Value> ConvertCastLike(OnnxNode& n) { return CastAsOnnx(n, n[0], n.type(1).dtype); }

Result<Value> ConvertBitCast(OnnxNode& n) {
  if (!n.has_attr("to")) return n.Error("has no attribute 'to', an element type");
  RIDGE_ASSIGN_OR_RETURN(const DType to, OnnxDTypeAttr(n, "to", DType::kF32));
  Value x = n[0];
  const DType from = n.type(0).dtype;
  if (BitsOf(from) != BitsOf(to)) {
    return n.Error(fmt::format("the input is {} and to is {}; they must have as many bits",
                               DTypeName(from), DTypeName(to)));
  }
  if (IsPartOfAByte(from)) x = LowBits(x, UnsignedOf(from));
  const DType middle = UnsignedOf(to);
  if (x.dtype() != middle) x = Op("bit_cast", {x}, {{"to", middle}});
  return LowBits(x, to);
}

constexpr OnnxConverter kTable[] = {
    {"", "BitCast", ConvertBitCast, 1},
    {"", "Cast", ConvertCast, 1},
    {"", "CastLike", ConvertCastLike, 2},
};

}  // namespace

std::span<const OnnxConverter> OnnxPointwiseCastConverters() { return kTable; }

}  // namespace ridge
