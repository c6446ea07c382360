// The laws: each text is in one row, whole; no row is overfull; rows do not depend on seed and
// epoch, the texts of equal length do; no two rows would fit into one.
#include "ridge/data/text_packing.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "ridge/core/random.h"

namespace ridge {
namespace {

std::vector<int32_t> Lengths(int count, int32_t most, uint32_t state) {
  std::vector<int32_t> lengths;
  for (int i = 0; i < count; ++i) {
    state = state * 1664525U + 1013904223U;
    lengths.push_back(1 + static_cast<int32_t>((state >> 8U) % static_cast<uint32_t>(most)));
  }
  return lengths;
}

std::vector<std::vector<int64_t>> RowsOf(const TextPacking& packing, int64_t epoch) {
  std::vector<std::vector<int64_t>> rows(static_cast<size_t>(packing.rows()));
  for (int64_t row = 0; row < packing.rows(); ++row) {
    for (int64_t place = 0; place < packing.TextsOf(row); ++place)
      rows[static_cast<size_t>(row)].push_back(packing.TextAt(row, place, epoch));
  }
  return rows;
}

TEST(TextPackingTest, EachTextIsInOneRowAndNoRowIsOverfull) {
  for (const int64_t length : {1, 7, 64}) {
    const auto lengths = Lengths(500, static_cast<int32_t>(length), 17);
    const TextPacking packing(lengths, length, /*seed=*/3);
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
      std::set<int64_t> seen;
      for (const auto& row : RowsOf(packing, epoch)) {
        int64_t tokens = 0;
        for (const int64_t text : row) {
          tokens += lengths[static_cast<size_t>(text)];
          EXPECT_TRUE(seen.insert(text).second);
        }
        EXPECT_LE(tokens, length);
        EXPECT_GE(tokens, 1);
      }
      EXPECT_EQ(seen.size(), lengths.size());
    }
  }
}

TEST(TextPackingTest, AnyTwoRowsTogetherAreOverfull) {
  const auto lengths = Lengths(300, 40, 5);
  const TextPacking packing(lengths, 64, 0);
  std::vector<int64_t> filled;
  for (const auto& row : RowsOf(packing, 0)) {
    filled.push_back(0);
    for (const int64_t text : row) filled.back() += lengths[static_cast<size_t>(text)];
  }
  std::sort(filled.begin(), filled.end());
  ASSERT_GE(filled.size(), 2U);
  EXPECT_GT(filled[0] + filled[1], 64);
}

TEST(TextPackingTest, RowsAreAFunctionOfSeedAndEpoch) {
  const auto lengths = Lengths(200, 10, 9);
  const TextPacking a(lengths, 32, 1), same(lengths, 32, 1), other(lengths, 32, 2);
  EXPECT_EQ(RowsOf(a, 4), RowsOf(same, 4));
  EXPECT_NE(RowsOf(a, 4), RowsOf(a, 5));
  EXPECT_NE(RowsOf(a, 4), RowsOf(other, 4));
  EXPECT_EQ(a.rows(), other.rows());
}

TEST(TextPackingTest, SharesOfPaddingAreThoseOfTheRows) {
  const std::vector<int32_t> lengths = {6, 2, 3, 5};
  const PaddingShares shares = SharesOf(lengths, 8);
  EXPECT_EQ(shares.rows, 2);
  EXPECT_EQ(shares.tokens, 16);
  EXPECT_DOUBLE_EQ(shares.alone, 0.5);
  EXPECT_DOUBLE_EQ(shares.packed, 0);
}

}  // namespace
}  // namespace ridge
