#include "ridge/core/dtype.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "ridge/core/small_float.h"

namespace ridge {
namespace {

enum class Kind { kFloat, kSigned, kUnsigned, kOther };

struct DTypeFacts {
  const char* name;
  int64_t bytes;
  Kind kind;
  int bits;
};
constexpr std::array<DTypeFacts, kDTypeCount> kFacts = {{
    {"f64", 8, Kind::kFloat, 64},       {"f32", 4, Kind::kFloat, 32},
    {"f16", 2, Kind::kFloat, 16},       {"bf16", 2, Kind::kFloat, 16},
    {"i64", 8, Kind::kSigned, 64},      {"i32", 4, Kind::kSigned, 32},
    {"u8", 1, Kind::kUnsigned, 8},      {"i8", 1, Kind::kSigned, 8},
    {"bool", 1, Kind::kOther, 1},       {"i16", 2, Kind::kSigned, 16},
    {"u16", 2, Kind::kUnsigned, 16},    {"u32", 4, Kind::kUnsigned, 32},
    {"u64", 8, Kind::kUnsigned, 64},    {"f8e4m3fn", 1, Kind::kOther, 8},
    {"f8e4m3fnuz", 1, Kind::kOther, 8}, {"f8e5m2", 1, Kind::kOther, 8},
    {"f8e5m2fnuz", 1, Kind::kOther, 8}, {"f8e8m0", 1, Kind::kOther, 8},
    {"f4e2m1", 1, Kind::kOther, 4},     {"i4", 1, Kind::kSigned, 4},
    {"u4", 1, Kind::kUnsigned, 4},      {"i2", 1, Kind::kSigned, 2},
    {"u2", 1, Kind::kUnsigned, 2},
}};

const DTypeFacts& Facts(DType t) { return kFacts[static_cast<size_t>(t)]; }

template <typename T>
T Saturate(double value) {
  if (std::isnan(value)) return 0;
  if (value <= static_cast<double>(std::numeric_limits<T>::min()))
    return std::numeric_limits<T>::min();
  if (value >= static_cast<double>(std::numeric_limits<T>::max()))
    return std::numeric_limits<T>::max();
  return static_cast<T>(value);
}

// Of 4 and 2 bits, in the low bits of a byte, sign-extended.
int8_t SaturateSigned(double value, int bits) {
  const double end = std::ldexp(1.0, bits - 1);
  return Saturate<int8_t>(std::min(std::max(value, -end), end - 1));
}
uint8_t SaturateUnsigned(double value, int bits) {
  return Saturate<uint8_t>(std::min(value, std::ldexp(1.0, bits) - 1));
}

// The low bits of a whole number, as two's complement.
double Wrap(DType to, double value) {
  if (!std::isfinite(value)) return 0;
  const double modulus = std::ldexp(1.0, IntegerBits(to));
  double low = std::fmod(std::trunc(value), modulus);
  if (low < 0) low += modulus;
  return IsSigned(to) && low >= modulus / 2 ? low - modulus : low;
}

double CastSmallFloat(DType to, double value, bool saturate) {
  const double largest = LargestSmallFloat(to);
  if (saturate) return std::isinf(value) ? std::copysign(largest, value) : value;
  if (to == DType::kF8E8M0 && value < SmallFloatToDouble(to, 0))  // 0 and below are not held
    return std::numeric_limits<double>::quiet_NaN();
  if (!(std::fabs(RoundToSmallFloat(to, value)) > largest)) return value;
  const double beyond = HasInfinity(to) ? std::numeric_limits<double>::infinity()
                                        : std::numeric_limits<double>::quiet_NaN();
  return std::copysign(beyond, value);
}

}  // namespace

int64_t BytesPerElement(DType t) { return Facts(t).bytes; }
const char* DTypeName(DType t) { return Facts(t).name; }
bool Is16BitFloat(DType t) { return t == DType::kF16 || t == DType::kBF16; }
bool IsFloat(DType t) { return Facts(t).kind == Kind::kFloat; }
bool IsSigned(DType t) { return Facts(t).kind == Kind::kSigned; }
bool IsInteger(DType t) { return IsSigned(t) || Facts(t).kind == Kind::kUnsigned; }
int IntegerBits(DType t) { return Facts(t).bits; }

std::string AllDTypeNames() {
  std::string names;
  for (const DTypeFacts& facts : kFacts)
    names += (names.empty() ? "" : ", ") + std::string(facts.name);
  return names;
}

std::optional<DType> ParseDType(std::string_view name) {
  for (int i = 0; i < kDTypeCount; ++i) {
    if (name == kFacts[static_cast<size_t>(i)].name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

namespace {

// To one of the two floats around `value`: itself, else the one with an odd last bit.  Rounding
// that to two bits less or fewer is rounding `value` once, because it is on the same side of every
// tie (Boldo and Melquiond, "When double rounding is odd", 2005).
float RoundToOdd(double value) {
  const auto nearest = static_cast<float>(value);
  const auto bits = std::bit_cast<uint32_t>(nearest);
  if (std::isnan(value) || static_cast<double>(nearest) == value || bits % 2 == 1) return nearest;
  const bool away = std::fabs(static_cast<double>(nearest)) > std::fabs(value);
  return std::bit_cast<float>(away ? bits - 1 : bits + 1);
}

}  // namespace

float BF16ToFloat(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

uint16_t FloatToBF16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

float F16ToFloat(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1F;
  const uint32_t mantissa = bits & 0x3FF;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000 | (mantissa << 13));
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return sign != 0 ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

uint16_t FloatToF16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const float magnitude = std::fabs(value);
  if (std::isnan(value)) return sign | 0x7E00;
  if (magnitude >= 65520.0F) return sign | 0x7C00;
  if (magnitude < 0x1p-14F) {  // subnormal: the addition rounds to a multiple of 2^-24
    const float rounded = magnitude + 0.5F;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(rounded) - 0x3F000000));
  }
  const uint32_t rounded = (bits & 0x7FFFFFFF) + 0xFFF + ((bits >> 13) & 1);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000) >> 13));
}

double LoadAsDouble(DType t, const void* data, int64_t i) {
  switch (t) {
    case DType::kF64:
      return static_cast<const double*>(data)[i];
    case DType::kF32:
      return static_cast<const float*>(data)[i];
    case DType::kF16:
      return F16ToFloat(static_cast<const uint16_t*>(data)[i]);
    case DType::kBF16:
      return BF16ToFloat(static_cast<const uint16_t*>(data)[i]);
    case DType::kI64:
      return static_cast<double>(static_cast<const int64_t*>(data)[i]);
    case DType::kI32:
      return static_cast<const int32_t*>(data)[i];
    case DType::kU8:
      return static_cast<const uint8_t*>(data)[i];
    case DType::kI8:
      return static_cast<const int8_t*>(data)[i];
    case DType::kBool:
      return static_cast<const uint8_t*>(data)[i] != 0 ? 1 : 0;
    case DType::kI16:
      return static_cast<const int16_t*>(data)[i];
    case DType::kU16:
      return static_cast<const uint16_t*>(data)[i];
    case DType::kU32:
      return static_cast<const uint32_t*>(data)[i];
    case DType::kU64:
      return static_cast<double>(static_cast<const uint64_t*>(data)[i]);
    case DType::kI4:
    case DType::kI2:
      return static_cast<const int8_t*>(data)[i];
    case DType::kU4:
    case DType::kU2:
      return static_cast<const uint8_t*>(data)[i];
    case DType::kF8E4M3FN:
    case DType::kF8E4M3FNUZ:
    case DType::kF8E5M2:
    case DType::kF8E5M2FNUZ:
    case DType::kF8E8M0:
    case DType::kF4E2M1:
      return SmallFloatToDouble(t, static_cast<const uint8_t*>(data)[i]);
  }
  return 0;
}

void StoreFromDouble(DType t, void* data, int64_t i, double value) {
  switch (t) {
    case DType::kF64:
      static_cast<double*>(data)[i] = value;
      return;
    case DType::kF32:
      static_cast<float*>(data)[i] = static_cast<float>(value);
      return;
    case DType::kF16:
      static_cast<uint16_t*>(data)[i] = FloatToF16(RoundToOdd(value));
      return;
    case DType::kBF16:
      static_cast<uint16_t*>(data)[i] = FloatToBF16(RoundToOdd(value));
      return;
    case DType::kI64:
      static_cast<int64_t*>(data)[i] = Saturate<int64_t>(value);
      return;
    case DType::kI32:
      static_cast<int32_t*>(data)[i] = Saturate<int32_t>(value);
      return;
    case DType::kU8:
      static_cast<uint8_t*>(data)[i] = Saturate<uint8_t>(value);
      return;
    case DType::kI8:
      static_cast<int8_t*>(data)[i] = Saturate<int8_t>(value);
      return;
    case DType::kBool:
      static_cast<uint8_t*>(data)[i] = value != 0 ? 1 : 0;
      return;
    case DType::kI16:
      static_cast<int16_t*>(data)[i] = Saturate<int16_t>(value);
      return;
    case DType::kU16:
      static_cast<uint16_t*>(data)[i] = Saturate<uint16_t>(value);
      return;
    case DType::kU32:
      static_cast<uint32_t*>(data)[i] = Saturate<uint32_t>(value);
      return;
    case DType::kU64:
      static_cast<uint64_t*>(data)[i] = Saturate<uint64_t>(value);
      return;
    case DType::kI4:
    case DType::kI2:
      static_cast<int8_t*>(data)[i] = SaturateSigned(value, IntegerBits(t));
      return;
    case DType::kU4:
    case DType::kU2:
      static_cast<uint8_t*>(data)[i] = SaturateUnsigned(value, IntegerBits(t));
      return;
    case DType::kF8E4M3FN:
    case DType::kF8E4M3FNUZ:
    case DType::kF8E5M2:
    case DType::kF8E5M2FNUZ:
    case DType::kF8E8M0:
    case DType::kF4E2M1:
      static_cast<uint8_t*>(data)[i] = DoubleToSmallFloat(t, value);
      return;
  }
}

double CastValue(DType to, double value, bool saturate) {
  if (IsSmallFloat(to)) return CastSmallFloat(to, value, saturate);
  return IsInteger(to) && !saturate ? Wrap(to, value) : value;
}

void ConvertToDouble(DType t, const void* from, double* to, int64_t count) {
  if (t == DType::kF32) {
    const auto* values = static_cast<const float*>(from);
    for (int64_t i = 0; i < count; ++i) to[i] = values[i];
    return;
  }
  for (int64_t i = 0; i < count; ++i) to[i] = LoadAsDouble(t, from, i);
}

void ConvertFromDouble(DType t, const double* from, void* to, int64_t count) {
  if (t == DType::kF32) {
    auto* values = static_cast<float*>(to);
    for (int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(from[i]);
    return;
  }
  for (int64_t i = 0; i < count; ++i) StoreFromDouble(t, to, i, from[i]);
}

}  // namespace ridge
