#include "ridge/core/nf4.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "ridge/core/dtype.h"

namespace ridge {
namespace {

std::vector<float> Decoded(const std::vector<float>& block) {
  const uint16_t scale = Nf4Scale(block);
  std::vector<uint8_t> codes(static_cast<size_t>(Nf4CodeBytes(static_cast<int64_t>(block.size()))));
  EncodeNf4(block, scale, codes.data());
  std::vector<float> values;
  for (size_t i = 0; i < block.size(); ++i)
    values.push_back(
        BF16ToFloat(scale) *
        Nf4Values()[static_cast<size_t>(Nf4Code(codes.data(), static_cast<int64_t>(i)))]);
  return values;
}

std::vector<float> Normals(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 0.02F);
  std::vector<float> block(count);
  for (float& x : block) x = normal(random);
  return block;
}

TEST(Nf4, ValuesAscendFromMinusOneToOneWithZero) {
  const auto values = Nf4Values();
  EXPECT_TRUE(std::is_sorted(values.begin(), values.end()));
  EXPECT_EQ(values.front(), -1);
  EXPECT_EQ(values[7], 0);
  EXPECT_EQ(values.back(), 1);
}

// Half of the widest gap, 1 to 0.696, and the rounding of the scale.
TEST(Nf4, ErrorsStayWithinHalfAGap) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    const std::vector<float> block = Normals(1 + seed % 64, seed);
    const std::vector<float> decoded = Decoded(block);
    float most = 0;
    for (const float x : block) most = std::max(most, std::fabs(x));
    for (size_t i = 0; i < block.size(); ++i)
      EXPECT_LE(std::fabs(decoded[i] - block[i]), (0.5F * 0.3039F + 0.004F) * most) << i;
  }
}

TEST(Nf4, EncodingTwiceChangesNothing) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    const std::vector<float> once = Decoded(Normals(64, seed));
    EXPECT_EQ(Decoded(once), once);
  }
}

TEST(Nf4, ZerosAreExactAndSignsAreKept) {
  EXPECT_EQ(Decoded(std::vector<float>(64, 0.0F)), std::vector<float>(64, 0.0F));
  EXPECT_EQ(Decoded({-2, 0, 2}), (std::vector<float>{-2, 0, 2}));
}

TEST(Nf4, NotANumberIsSeenInTheWholeBlock) {
  const std::vector<float> decoded = Decoded({1, std::numeric_limits<float>::quiet_NaN(), 3});
  for (const float x : decoded) EXPECT_TRUE(std::isnan(x));
}

TEST(Nf4, TwoCodesShareAByteTheFirstInItsHighHalf) {
  uint8_t codes[2] = {};
  EncodeNf4(std::vector<float>{-1, 1, 0}, FloatToBF16(1), codes);
  EXPECT_EQ(codes[0], 0x0F);
  EXPECT_EQ(codes[1], 0x77);
}

}  // namespace
}  // namespace ridge
