// A format is five numbers; encoding rounds to a multiple of the last place and then reads the
// bits off with frexp.
#include "ridge/core/small_float.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ridge/core/status.h"

namespace ridge {
namespace {

struct Format {
  int mantissa_bits;
  int bias;
  double largest;
  int nan_bits;   // -1: there is none
  int sign_bits;  // the bit that says negative
  bool has_infinity;
  bool has_negative_zero;
};

constexpr double kSmallestE8M0 = 0x1p-127;
constexpr double kLargestE8M0 = 0x1p127;
constexpr uint8_t kNanE8M0 = 0xFF;

const Format& FormatOf(DType t) {
  static constexpr Format kE4M3FN{3, 7, 448, 0x7F, 0x80, false, true};
  static constexpr Format kE4M3FNUZ{3, 8, 240, 0x80, 0x80, false, false};
  static constexpr Format kE5M2{2, 15, 57344, 0x7E, 0x80, true, true};
  static constexpr Format kE5M2FNUZ{2, 16, 57344, 0x80, 0x80, false, false};
  static constexpr Format kE2M1{1, 1, 6, -1, 0x08, false, true};
  switch (t) {
    case DType::kF8E4M3FN:
      return kE4M3FN;
    case DType::kF8E4M3FNUZ:
      return kE4M3FNUZ;
    case DType::kF8E5M2:
      return kE5M2;
    case DType::kF8E5M2FNUZ:
      return kE5M2FNUZ;
    case DType::kF4E2M1:
      return kE2M1;
    default:
      RIDGE_CHECK(false, "the type is a small float with a mantissa");
  }
}

// The exponent of the largest power of two in |value|, but no less than that of subnormals.
int ExponentOf(const Format& format, double value) {
  int exponent = 0;
  std::frexp(value, &exponent);
  return std::max(exponent - 1, 1 - format.bias);
}

bool IsNan(const Format& format, int bits) {
  if (format.nan_bits < 0) return false;
  if (!format.has_negative_zero) return bits == format.nan_bits;
  const int magnitude = bits & (format.sign_bits - 1);
  const int infinity = 0x1F << format.mantissa_bits;
  return format.has_infinity ? magnitude > infinity : magnitude == format.nan_bits;
}

// Of a finite magnitude that the format holds.
int Encode(const Format& format, double magnitude) {
  const int exponent = ExponentOf(format, magnitude);
  const auto places =
      static_cast<int>(std::ldexp(magnitude, format.mantissa_bits - exponent));  // with leading 1
  const int stored = places >> format.mantissa_bits == 0 ? 0 : exponent + format.bias;
  return (stored << format.mantissa_bits) | (places & ((1 << format.mantissa_bits) - 1));
}

uint8_t EncodeE8M0(double value) {
  if (!(value >= 0)) return kNanE8M0;
  if (value >= kLargestE8M0) return 0xFE;
  if (value <= kSmallestE8M0) return 0;
  return static_cast<uint8_t>(std::ilogb(RoundToSmallFloat(DType::kF8E8M0, value)) + 127);
}

}  // namespace

bool IsSmallFloat(DType t) { return t >= DType::kF8E4M3FN && t <= DType::kF4E2M1; }
double LargestSmallFloat(DType t) {
  return t == DType::kF8E8M0 ? kLargestE8M0 : FormatOf(t).largest;
}
bool HasInfinity(DType t) { return t == DType::kF8E5M2; }

double SmallFloatToDouble(DType t, uint8_t bits) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  if (t == DType::kF8E8M0) return bits == kNanE8M0 ? kNan : std::ldexp(1.0, bits - 127);
  const Format& format = FormatOf(t);
  const double sign = (bits & format.sign_bits) != 0 ? -1 : 1;
  if (IsNan(format, bits)) return std::copysign(kNan, sign);
  const int magnitude = bits & (format.sign_bits - 1);
  const int exponent = magnitude >> format.mantissa_bits;
  if (format.has_infinity && exponent == 0x1F)
    return sign * std::numeric_limits<double>::infinity();
  int places = magnitude & ((1 << format.mantissa_bits) - 1);
  if (exponent > 0) places += 1 << format.mantissa_bits;
  return sign * std::ldexp(places, std::max(exponent, 1) - format.bias - format.mantissa_bits);
}

double RoundToSmallFloat(DType t, double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  if (t == DType::kF8E8M0) {
    int exponent = 0;
    const double fraction = std::frexp(value, &exponent);  // in [0.5, 1)
    return std::ldexp(1.0, std::fabs(fraction) >= 0.75 ? exponent : exponent - 1);
  }
  const Format& format = FormatOf(t);
  const int last_place = ExponentOf(format, value) - format.mantissa_bits;
  return std::ldexp(std::nearbyint(std::ldexp(value, -last_place)), last_place);
}

uint8_t DoubleToSmallFloat(DType t, double value) {
  if (t == DType::kF8E8M0) return EncodeE8M0(value);
  const Format& format = FormatOf(t);
  const int sign = std::signbit(value) ? format.sign_bits : 0;
  if (std::isnan(value)) {
    if (format.nan_bits < 0) return static_cast<uint8_t>(format.sign_bits);
    return static_cast<uint8_t>(format.has_negative_zero ? format.nan_bits | sign
                                                         : format.nan_bits);
  }
  const double magnitude = std::fabs(RoundToSmallFloat(t, value));
  if (format.has_infinity && std::isinf(magnitude))
    return static_cast<uint8_t>(sign | (0x1F << format.mantissa_bits));
  const int bits = Encode(format, std::min(magnitude, format.largest));
  if (bits == 0 && !format.has_negative_zero) return 0;
  return static_cast<uint8_t>(sign | bits);
}

}  // namespace ridge
