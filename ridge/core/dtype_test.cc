#include "ridge/core/dtype.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "ridge/core/reduced_floats.h"
#include "ridge/core/small_float.h"

namespace ridge {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr DType kSmallFloats[] = {DType::kF8E4M3FN,   DType::kF8E4M3FNUZ, DType::kF8E5M2,
                                  DType::kF8E5M2FNUZ, DType::kF8E8M0,     DType::kF4E2M1};

double Stored(DType t, double value) {
  uint64_t storage = 0;
  StoreFromDouble(t, &storage, 0, value);
  return LoadAsDouble(t, &storage, 0);
}
double Cast(DType t, double value, bool saturate) {
  return Stored(t, CastValue(t, value, saturate));
}

TEST(DType, NamesReadBack) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto t = static_cast<DType>(i);
    EXPECT_EQ(ParseDType(DTypeName(t)), t);
    EXPECT_FALSE(IsFloat(t) && IsInteger(t));
    EXPECT_FALSE(IsSmallFloat(t) && (IsFloat(t) || IsInteger(t)));
  }
  EXPECT_EQ(ParseDType("f8"), std::nullopt);
}

// All signs, exponents and the bits around each tie; NaN, too, and every number of a vector's rest.
TEST(ReducedFloats, ManyAtATimeHaveTheBitsOfOne) {
  std::vector<float> floats;
  for (uint32_t high = 0; high < 0x10000; ++high) {
    for (const uint32_t low : {0x0000U, 0x0001U, 0x7FFFU, 0x8000U, 0x8001U, 0x1000U, 0xF000U})
      floats.push_back(std::bit_cast<float>(high << 16 | low));
  }
  floats.resize(floats.size() - 3);
  const auto count = static_cast<int64_t>(floats.size());
  std::vector<uint16_t> bf16(floats.size()), f16(floats.size());
  std::vector<float> back(floats.size());
  FloatsToBF16(floats.data(), bf16.data(), count);
  FloatsToF16(floats.data(), f16.data(), count);
  BF16ToFloats(bf16.data(), back.data(), count);
  for (size_t i = 0; i < floats.size(); ++i) {
    ASSERT_EQ(bf16[i], FloatToBF16(floats[i])) << std::bit_cast<uint32_t>(floats[i]);
    ASSERT_EQ(f16[i], FloatToF16(floats[i])) << std::bit_cast<uint32_t>(floats[i]);
    ASSERT_EQ(std::bit_cast<uint32_t>(back[i]), std::bit_cast<uint32_t>(BF16ToFloat(bf16[i])));
  }
}

TEST(SmallFloat, EveryCodeIsReadAndWrittenBack) {
  for (const DType t : kSmallFloats) {
    const int codes = t == DType::kF4E2M1 ? 16 : 256;
    for (int code = 0; code < codes; ++code) {
      const auto bits = static_cast<uint8_t>(code);
      const double value = SmallFloatToDouble(t, bits);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(SmallFloatToDouble(t, DoubleToSmallFloat(t, value))));
      } else {
        EXPECT_EQ(DoubleToSmallFloat(t, value), bits) << DTypeName(t) << " " << value;
      }
    }
  }
}

// The definition of rounding, without its arithmetic: no other number of the format is nearer, and
// at equal distance the code is even.
TEST(SmallFloat, RoundsToTheNearestAndTiesToEven) {
  for (const DType t : kSmallFloats) {
    if (t == DType::kF8E8M0) continue;
    const int positive = t == DType::kF4E2M1 ? 8 : 128;
    for (int code = 0; code + 1 < positive; ++code) {
      const double low = SmallFloatToDouble(t, static_cast<uint8_t>(code));
      const double high = SmallFloatToDouble(t, static_cast<uint8_t>(code + 1));
      if (!std::isfinite(high)) break;
      const double middle = (low + high) / 2, nudge = (high - low) / 64;
      EXPECT_EQ(DoubleToSmallFloat(t, middle - nudge), code) << DTypeName(t);
      EXPECT_EQ(DoubleToSmallFloat(t, middle + nudge), code + 1) << DTypeName(t);
      EXPECT_EQ(DoubleToSmallFloat(t, middle), code % 2 == 0 ? code : code + 1) << DTypeName(t);
    }
  }
}

TEST(SmallFloat, LargestNumbersAreThoseOfTheSpecification) {
  const double largest[] = {448, 240, 57344, 57344, 0x1p127, 6};
  for (size_t i = 0; i < std::size(largest); ++i) {
    EXPECT_EQ(Stored(kSmallFloats[i], 1e300), largest[i]);
    EXPECT_EQ(LargestSmallFloat(kSmallFloats[i]), largest[i]);
  }
}

TEST(SmallFloat, OnlyE5M2StoresInfinity) {
  for (const DType t : kSmallFloats)
    EXPECT_EQ(Stored(t, kInf), HasInfinity(t) ? kInf : LargestSmallFloat(t));
}

TEST(SmallFloat, PowersOfTwoRoundAtOneAndAHalf) {
  EXPECT_EQ(Stored(DType::kF8E8M0, 1.4999), 1);
  EXPECT_EQ(Stored(DType::kF8E8M0, 1.5), 2);
  EXPECT_EQ(Stored(DType::kF8E8M0, 0), 0x1p-127);
  EXPECT_TRUE(std::isnan(Stored(DType::kF8E8M0, -1)));
  EXPECT_TRUE(std::isnan(Stored(DType::kF8E8M0, kNan)));
}

TEST(CastValue, SaturatesOrOverflowsAsOnnxSays) {
  for (const DType t : kSmallFloats) {
    if (t == DType::kF4E2M1 || t == DType::kF8E8M0) continue;
    const double largest = LargestSmallFloat(t);
    EXPECT_EQ(Cast(t, kInf, true), largest);
    EXPECT_EQ(Cast(t, -1e30, true), -largest);
    EXPECT_TRUE(std::isnan(Cast(t, kNan, true)));
    const double beyond = Cast(t, -1e30, false);
    EXPECT_TRUE(HasInfinity(t) ? beyond == -kInf : std::isnan(beyond)) << DTypeName(t);
    EXPECT_EQ(Cast(t, largest * 1.01, false), largest);  // [x] is in range
  }
}

TEST(CastValue, IntegersKeepTheirLowBits) {
  EXPECT_EQ(Cast(DType::kI8, 200, false), -56);
  EXPECT_EQ(Cast(DType::kU8, -1, false), 255);
  EXPECT_EQ(Cast(DType::kI4, -9, false), 7);
  EXPECT_EQ(Cast(DType::kU2, 7, false), 3);
  EXPECT_EQ(Cast(DType::kI64, 5, false), 5);
  EXPECT_EQ(Cast(DType::kI32, 4294967295.0, false), -1);
  EXPECT_EQ(Cast(DType::kI32, kInf, false), 0);
}

TEST(Integers, SaturateAtTheirEnds) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto t = static_cast<DType>(i);
    if (!IsInteger(t) || IntegerBits(t) == 64) continue;
    const int bits = IntegerBits(t);
    const double top = std::ldexp(1.0, IsSigned(t) ? bits - 1 : bits) - 1;
    EXPECT_EQ(Stored(t, 1e30), top) << DTypeName(t);
    EXPECT_EQ(Stored(t, -1e30), IsSigned(t) ? -top - 1 : 0) << DTypeName(t);
    EXPECT_EQ(Stored(t, kNan), 0);
    EXPECT_EQ(Stored(t, top - 0.5), top - 1);
  }
}

// Neighbours, their midpoint, and the nearest doubles on either side of the midpoint.
void ExpectRoundsOnce(DType t, double low, double high, double even) {
  const double middle = low / 2 + high / 2;
  ASSERT_EQ(Stored(t, low), low);
  EXPECT_EQ(Stored(t, middle), even) << DTypeName(t) << " " << middle;
  EXPECT_EQ(Stored(t, std::nextafter(middle, -kInf)), low) << DTypeName(t) << " " << middle;
  EXPECT_EQ(Stored(t, std::nextafter(middle, kInf)), high) << DTypeName(t) << " " << middle;
  EXPECT_EQ(Stored(t, -std::nextafter(middle, -kInf)), -low) << DTypeName(t) << " " << middle;
  EXPECT_EQ(Stored(t, -std::nextafter(middle, kInf)), -high) << DTypeName(t) << " " << middle;
}

// All numbers of 16 bits: zero, subnormal, normal, and the end, where infinity takes the place of
// the next power of two.
TEST(HalfFloat, ADoubleIsRoundedOnce) {
  for (const DType t : {DType::kF16, DType::kBF16}) {
    const uint16_t infinity = t == DType::kF16 ? 0x7C00 : 0x7F80;
    for (uint16_t bits = 0; bits + 1 < infinity; ++bits) {
      const auto above = static_cast<uint16_t>(bits + 1);
      const double low = LoadAsDouble(t, &bits, 0), high = LoadAsDouble(t, &above, 0);
      ExpectRoundsOnce(t, low, high, bits % 2 == 0 ? low : high);
    }
    const double largest = t == DType::kF16 ? 65504 : 0x1.FEp127;
    const double end = t == DType::kF16 ? 65520 : 0x1.FFp127;
    EXPECT_EQ(Stored(t, std::nextafter(end, 0)), largest);
    EXPECT_EQ(Stored(t, end), kInf);
    EXPECT_EQ(Stored(t, -end), -kInf);
    EXPECT_EQ(Stored(t, 1e300), kInf);
    EXPECT_EQ(Stored(t, kInf), kInf);
    EXPECT_TRUE(std::isnan(Stored(t, kNan)));
    EXPECT_TRUE(std::signbit(Stored(t, -0.0)));
    EXPECT_TRUE(std::signbit(Stored(t, -1e-300)));
    EXPECT_EQ(Stored(t, 5e-324), 0);
  }
}

}  // namespace
}  // namespace ridge
