#include "ridge/core/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

namespace ridge {
namespace {

constexpr RandomKey kKey{0x123456789ABCDEF, 77, 5};

// As the formula says, with the library's functions.
std::array<double, 4> BoxMuller(const std::array<uint32_t, 4>& words) {
  std::array<double, 4> normal{};
  for (size_t pair = 0; pair < 4; pair += 2) {
    const double radius = std::sqrt(-2 * std::log((words[pair] + 1.0) * 0x1p-32));
    const double angle = 2 * M_PI * (words[pair + 1] * 0x1p-32);
    normal[pair] = radius * std::cos(angle);
    normal[pair + 1] = radius * std::sin(angle);
  }
  return normal;
}

TEST(Philox, GivesThePublishedAnswers) {
  using Block = std::array<uint32_t, 4>;
  EXPECT_EQ(Philox(0, {0, 0, 0, 0}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox(~uint64_t{0}, {~0U, ~0U, ~0U, ~0U}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox(0x299f31d0a4093822, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(DrawWords, AreThoseOfTheBlocks) {
  for (const uint64_t first : {uint64_t{0}, uint64_t{1000}, (uint64_t{1} << 32) - 4}) {
    std::vector<uint32_t> words(4 * 2 * kDrawBlocks);
    DrawWords(kKey, /*sample=*/3, first, 2 * kDrawBlocks, words.data());
    for (size_t i = 0; i < words.size(); ++i)
      EXPECT_EQ(words[i], DrawBlock(kKey, 3, first + i / 4)[i % 4]) << first << " " << i;
  }
}

// Radius below 6.7, so an error of 1e-14 is a few last bits of the largest.
TEST(DrawNormals, IsBoxMullerOverTheBlocksWords) {
  for (const uint64_t first : {uint64_t{0}, uint64_t{1000}, (uint64_t{1} << 32) - 4}) {
    std::vector<double> numbers(4 * 64);
    DrawNormals(kKey, /*sample=*/3, first, 64, numbers.data());
    for (size_t b = 0; b < 64; ++b) {
      const auto expected = BoxMuller(DrawBlock(kKey, 3, first + b));
      for (size_t k = 0; k < 4; ++k)
        EXPECT_NEAR(numbers[4 * b + k], expected[k], 1e-14) << first + b << " " << k;
    }
  }
}

TEST(DrawNormals, DoesNotDependOnHowManyAreDrawn) {
  std::vector<double> many(4 * 32), few(4 * kDrawBlocks);
  DrawNormals(kKey, 0, 0, 32, many.data());
  DrawNormals(kKey, 0, 16, kDrawBlocks, few.data());
  for (size_t i = 0; i < few.size(); ++i) EXPECT_EQ(many[4 * 16 + i], few[i]);
  EXPECT_EQ(DrawNormalBlock(kKey, 0, 17)[2], few[6]);
}

TEST(DrawNormals, HasMeanZeroAndDeviationOne) {
  std::vector<double> numbers(1 << 20);
  DrawNormals(kKey, 0, 0, 1 << 18, numbers.data());
  const auto count = static_cast<double>(numbers.size());
  const double mean = std::accumulate(numbers.begin(), numbers.end(), 0.0) / count;
  double squares = 0;
  for (const double x : numbers) squares += x * x;
  EXPECT_NEAR(mean, 0, 4e-3);  // four standard errors
  EXPECT_NEAR(squares / count, 1, 6e-3);
}

TEST(DrawSymmetricUniforms, IsTwiceTheUniformLessOne) {
  std::vector<double> numbers(4 * 16);
  DrawSymmetricUniforms(kKey, 9, 40, 16, numbers.data());
  for (size_t i = 0; i < numbers.size(); ++i)
    EXPECT_EQ(numbers[i], 2.0 * ToUniform(Draw(kKey, 9, 160 + i)) - 1) << i;
}

}  // namespace
}  // namespace ridge
