// DType: the element types of tensors, their sizes, names and conversions.
//
// Floats are what the engine computes in: f64, f32, f16, bf16.  Floats of 8 and 4 bits
// (small_float.h) are only stored: cast, move and compare take them.  Numbers of 4 and 2 bits take
// a byte each.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ridge {

enum class DType : uint8_t {
  kF64,
  kF32,
  kF16,
  kBF16,
  kI64,
  kI32,
  kU8,
  kI8,
  kBool,
  kI16,
  kU16,
  kU32,
  kU64,
  kF8E4M3FN,
  kF8E4M3FNUZ,
  kF8E5M2,
  kF8E5M2FNUZ,
  kF8E8M0,
  kF4E2M1,
  kI4,
  kU4,
  kI2,
  kU2,
};
inline constexpr int kDTypeCount = 23;

int64_t BytesPerElement(DType t);
const char* DTypeName(DType t);  // "f32"
std::optional<DType> ParseDType(std::string_view name);
std::string AllDTypeNames();  // "f64, f32, ..."
bool IsFloat(DType t);        // one the engine computes in
bool Is16BitFloat(DType t);   // f16, bf16
bool IsInteger(DType t);      // not bool
bool IsSigned(DType t);       // an integer that can be negative
int IntegerBits(DType t);     // 4 for i4.  REQUIRES: IsInteger(t)

// Every DType can be read and written as a double: exactly for all but 64-bit integers, which are
// exact up to 2^53.  Floats round to nearest even, small floats saturate too; integers truncate
// toward zero and saturate (NaN becomes 0); bool is x != 0.
double LoadAsDouble(DType t, const void* data, int64_t index);
void StoreFromDouble(DType t, void* data, int64_t index, double value);

// Both for `count` elements.
void ConvertToDouble(DType t, const void* from, double* to, int64_t count);
void ConvertFromDouble(DType t, const double* from, void* to, int64_t count);

// The value that a cast hands to StoreFromDouble.  With `saturate` infinity becomes the largest
// number of a small float; without, what is too large for one becomes infinity or NaN, and integers
// keep their low bits: 200 becomes -56 in i8.
double CastValue(DType to, double value, bool saturate);

float F16ToFloat(uint16_t bits);
uint16_t FloatToF16(float value);
float BF16ToFloat(uint16_t bits);
uint16_t FloatToBF16(float value);

}  // namespace ridge
