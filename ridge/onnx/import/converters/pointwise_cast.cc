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

Value LowBits(GraphBuilder& b, Value x, DType to) {
  const AttrMap attrs = {{"to", std::string(DTypeName(to))}, {"saturate", int64_t{0}}};
  return b.type(x).dtype == to ? x : b.Op("cast", {x}, attrs);
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
  GraphBuilder& b = n.b();
  const DType from = b.type(x).dtype;
  if (from == to) return x;
  AttrMap attrs = {{"to", std::string(DTypeName(to))}};
  const bool is_f8 = IsSmallFloat(to) && to != DType::kF4E2M1;
  const bool keeps_low_bits = DropsBits(from, to);
  if (keeps_low_bits || (is_f8 && n.integer("saturate", 1) == 0)) attrs["saturate"] = int64_t{0};
  if (to == DType::kF8E8M0) attrs["round"] = n.text("round_mode", "up");
  return b.Op("cast", {x}, attrs);
}

Status ConvertCast(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(1));
  if (!n.has_attr("to")) return n.Error("has no attribute 'to', an element type");
  RIDGE_ASSIGN_OR_RETURN(const DType to, OnnxDTypeAttr(n, "to", DType::kF32));
  n.Set(0, CastAsOnnx(n, n.input(0), to));
  return n.status();
}

Status ConvertCastLike(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(2));
  n.Set(0, CastAsOnnx(n, n.input(0), n.type(1).dtype));
  return n.status();
}

Status ConvertBitCast(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(1));
  if (!n.has_attr("to")) return n.Error("has no attribute 'to', an element type");
  RIDGE_ASSIGN_OR_RETURN(const DType to, OnnxDTypeAttr(n, "to", DType::kF32));
  GraphBuilder& b = n.b();
  Value x = n.input(0);
  const DType from = n.type(0).dtype;
  if (BitsOf(from) != BitsOf(to)) {
    return n.Error(fmt::format("the input is {} and to is {}; they must have as many bits",
                               DTypeName(from), DTypeName(to)));
  }
  if (IsPartOfAByte(from)) x = LowBits(b, x, UnsignedOf(from));
  const DType middle = UnsignedOf(to);
  if (b.type(x).dtype != middle)
    x = b.Op("bit_cast", {x}, {{"to", std::string(DTypeName(middle))}});
  n.Set(0, LowBits(b, x, to));
  return n.status();
}

constexpr OnnxConverter kTable[] = {
    {"", "BitCast", ConvertBitCast},
    {"", "Cast", ConvertCast},
    {"", "CastLike", ConvertCastLike},
};

}  // namespace

std::span<const OnnxConverter> OnnxPointwiseCastConverters() { return kTable; }

}  // namespace ridge
