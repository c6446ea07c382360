// DType: the element types of tensors, their sizes, names and conversions.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace ridge {

enum class DType : uint8_t { kF64, kF32, kF16, kBF16, kI64, kI32, kU8, kI8, kBool };
inline constexpr int kDTypeCount = 9;

int64_t BytesPerElement(DType t);
const char* DTypeName(DType t);  // "f32"
std::optional<DType> ParseDType(std::string_view name);
bool IsFloat(DType t);

// Every DType can be read and written as a double: exactly for all but 64-bit integers, which are
// exact up to 2^53.  Floats round to nearest even; integers truncate toward zero and saturate
// (NaN becomes 0); bool is x != 0.
double LoadAsDouble(DType t, const void* data, int64_t index);
void StoreFromDouble(DType t, void* data, int64_t index, double value);

// The same for `count` elements.
void ConvertToDouble(DType t, const void* from, double* to, int64_t count);
void ConvertFromDouble(DType t, const double* from, void* to, int64_t count);

float F16ToFloat(uint16_t bits);
uint16_t FloatToF16(float value);
float BF16ToFloat(uint16_t bits);
uint16_t FloatToBF16(float value);

}  // namespace ridge
