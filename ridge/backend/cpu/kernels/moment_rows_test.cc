#include "ridge/backend/cpu/kernels/moment_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "ridge/core/dtype.h"
#include "ridge/graph/ops/shared/moments.h"

namespace ridge::cpu {
namespace {

constexpr CodeSigns kBoth[] = {CodeSigns::kSigned, CodeSigns::kUnsigned};
using Block = std::vector<float>;

// Of many magnitudes, so that every decade of the code is met.
Block Draw(CodeSigns signs, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> exponent(-9, 2);
  Block block(kCodeBlock);
  for (float& x : block) {
    x = std::pow(10.0F, exponent(random));
    if (signs == CodeSigns::kSigned && random() % 2 == 0) x = -x;
  }
  return block;
}

Block Decoded(CodeSigns signs, const std::vector<uint8_t>& codes, float absmax, int64_t count) {
  Block block(kCodeBlock);
  DecodeRun(signs, codes.data(), absmax, count, block.data());
  block.resize(static_cast<size_t>(count));
  return block;
}

// Half the distance to the next value, times absmax, and the rounding of f32; without signs the
// lowest gap counts whole.
double AllowedError(CodeSigns signs, int code, float absmax) {
  const double here = DynamicValue(signs, code);
  double gap = 0;
  if (code < 255) gap = DynamicValue(signs, code + 1) - here;
  if (code > 0) gap = std::max(gap, here - DynamicValue(signs, code - 1));
  if (signs == CodeSigns::kSigned && code == 0) gap = 2 * (1 + here);
  const double share = signs == CodeSigns::kUnsigned && code == 1 ? 1 : 0.5;
  return (share * gap + 4e-7 * std::fabs(here)) * double{absmax};
}

TEST(MomentRows, ErrorOfACodeIsAtMostHalfItsGap) {
  for (const CodeSigns signs : kBoth) {
    for (uint32_t seed = 0; seed < 50; ++seed) {
      const Block block = Draw(signs, seed);
      Block kept = block;
      std::vector<uint8_t> codes(kCodeBlock);
      const float absmax = EncodeRun(signs, kept.data(), kCodeBlock, codes.data());
      const Block back = Decoded(signs, codes, absmax, kCodeBlock);
      for (size_t i = 0; i < block.size(); ++i) {
        EXPECT_LE(std::fabs(double{back[i]} - double{block[i]}),
                  AllowedError(signs, codes[i], absmax))
            << block[i];
      }
    }
  }
}

TEST(MomentRows, CodesAreThoseOfTheReference) {
  for (const CodeSigns signs : kBoth) {
    for (uint32_t seed = 0; seed < 50; ++seed) {
      Block block = Draw(signs, 100 + seed);
      const float absmax = *std::max_element(
          block.begin(), block.end(), [](float a, float b) { return std::fabs(a) < std::fabs(b); });
      std::vector<uint8_t> codes(kCodeBlock);
      EXPECT_EQ(EncodeRun(signs, block.data(), kCodeBlock, codes.data()), std::fabs(absmax));
      for (size_t i = 0; i < block.size(); ++i)
        EXPECT_EQ(codes[i], DynamicCode(signs, double{block[i]} / std::fabs(double{absmax})));
    }
  }
}

TEST(MomentRows, EveryCodeDecodesToItsValue) {
  std::vector<uint8_t> codes(kCodeBlock);
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint8_t>(i);
  for (const CodeSigns signs : kBoth) {
    const Block values = Decoded(signs, codes, 1, kCodeBlock);
    for (int code = 0; code < 256; ++code) {
      const double value = DynamicValue(signs, code);
      EXPECT_NEAR(values[static_cast<size_t>(code)], value, 1e-6 * std::abs(value)) << code;
    }
  }
}

TEST(MomentRows, ABlockOfZerosStaysZero) {
  for (const CodeSigns signs : kBoth) {
    Block block(kCodeBlock, 0.0F);
    std::vector<uint8_t> codes(kCodeBlock, 77);
    EXPECT_EQ(EncodeRun(signs, block.data(), kCodeBlock, codes.data()), 0);
    EXPECT_EQ(Decoded(signs, codes, 0, kCodeBlock), block);
  }
}

TEST(MomentRows, AShortBlockHasTheBitsOfALongOneWithZerosBehind) {
  for (const CodeSigns signs : kBoth) {
    for (const int64_t count : {1, 7, 31, 255}) {
      Block block = Draw(signs, 7), padded = block;
      std::fill(padded.begin() + count, padded.end(), 0.0F);
      std::vector<uint8_t> codes(kCodeBlock, 0), all(kCodeBlock);
      EXPECT_EQ(EncodeRun(signs, block.data(), count, codes.data()),
                EncodeRun(signs, padded.data(), kCodeBlock, all.data()));
      EXPECT_TRUE(std::equal(codes.begin(), codes.begin() + count, all.begin()));
      EXPECT_TRUE(std::all_of(codes.begin() + count, codes.end(), [](int c) { return c == 0; }));
    }
  }
}

TEST(MomentRows, MagnitudesOfTheSmallestAndLargestFloats) {
  for (const float scale : {std::numeric_limits<float>::denorm_min(), 1e-38F, 1e38F}) {
    Block block(kCodeBlock, 0.0F);
    block[3] = scale;
    std::vector<uint8_t> codes(kCodeBlock);
    const float absmax = EncodeRun(CodeSigns::kUnsigned, block.data(), kCodeBlock, codes.data());
    EXPECT_EQ(Decoded(CodeSigns::kUnsigned, codes, absmax, kCodeBlock)[3], scale);
  }
}

const ElementKey kKey = ElementKeyOf({.seed = 5, .stream = 6, .step = 7});

TEST(RoundRunAtRandom, HasTheBitsOfTheReferenceWhereverItEnds) {
  const Block block = Draw(CodeSigns::kSigned, 3);
  for (const bool upper : {false, true}) {
    for (const int64_t count : {1, 8, 13, 256}) {
      std::vector<uint16_t> rounded(kCodeBlock, 0);
      RoundRunAtRandom(block.data(), kKey, /*first=*/99, upper, count, rounded.data());
      for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
        const uint32_t word = ElementWord(kKey, static_cast<uint32_t>(99 + i));
        const uint32_t random = upper ? word >> 16 : word & 0xFFFF;
        EXPECT_EQ(BF16ToFloat(rounded[i]), RoundAtRandom(block[i], random));
      }
    }
  }
}

TEST(RoundRunAtRandom, KeepsExactNumbersInfinityAndNan) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Block block = {0, -0.0F, 1, -1.5F, kInfinity, -kInfinity, std::nanf(""), -std::nanf("")};
  block.resize(16, 2);
  for (const int64_t count : {8, 7, 16}) {
    std::vector<uint16_t> rounded(16, 0);
    RoundRunAtRandom(block.data(), kKey, 0, false, count, rounded.data());
    for (size_t i = 0; i < 6; ++i) EXPECT_EQ(BF16ToFloat(rounded[i]), block[i]);
    EXPECT_TRUE(std::isnan(BF16ToFloat(rounded[6])));
  }
}

// The mean of many roundings of one number is the number; to the nearest, it would be 1.
TEST(RoundRunAtRandom, HasTheNumberAsItsMean) {
  constexpr int64_t kDraws = 1 << 16;
  const Block block(kDraws, 1 + 0x1p-10F);
  std::vector<uint16_t> rounded(kDraws);
  for (const bool upper : {false, true}) {
    RoundRunAtRandom(block.data(), kKey, 0, upper, kDraws, rounded.data());
    double sum = 0;
    for (const uint16_t bits : rounded) sum += double{BF16ToFloat(bits)};
    const double deviation = 0x1p-7 * std::sqrt(0.125 * 0.875 / static_cast<double>(kDraws));
    EXPECT_NEAR(sum / static_cast<double>(kDraws), 1 + 0x1p-10, 4 * deviation);
  }
}

}  // namespace
}  // namespace ridge::cpu
