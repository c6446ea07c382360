#include "ridge/dist/tree_sum.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "ridge/core/rounding.h"
#include "ridge/dist/test_ranks.h"

namespace ridge {
namespace {

// 1000 f32, 3 f64, 5 i64 and 2100 f32 that may be narrow, each from a new line on.
SumBlock Block(bool narrow = false, int64_t segment_bytes = 0) {
  SumBlock block;
  block.segment_bytes = segment_bytes;
  block.values = {{0, 1000, DType::kF32, narrow},
                  {4032, 3, DType::kF64},
                  {4096, 5, DType::kI64},
                  {4160, 2100, DType::kF32, narrow}};
  block.bytes = 12608;
  return block;
}

using Bytes = std::vector<std::byte>;

Bytes RandomSlice(int64_t slice) {
  std::mt19937 random(static_cast<uint32_t>(slice) + 7);
  std::normal_distribution<double> number(0, 1000);
  const SumBlock block = Block();
  Bytes bytes(static_cast<size_t>(block.bytes));
  for (const SumBlock::Values& values : block.values) {
    for (int64_t i = 0; i < values.elements; ++i)
      StoreFromDouble(values.dtype, bytes.data() + values.offset_bytes, i, number(random));
  }
  return bytes;
}

// The parts of a rank, by folds.
std::vector<Bytes> PartsOfRank(const SliceShare& share, const SumBlock& block) {
  const SliceRange owned = share.owned();
  const std::vector<SliceFold> folds = FoldsOf(owned, share.slices);
  std::vector<Bytes> at(static_cast<size_t>(PositionsOf(folds)));
  for (int64_t slice = owned.first; slice < owned.end; ++slice) {
    const SliceFold& fold = folds[static_cast<size_t>(slice - owned.first)];
    auto top = static_cast<size_t>(fold.position);
    at[top] = RandomSlice(slice);
    for (int64_t i = 0; i < fold.additions; ++i, --top)
      AddSums(block, 0, block.bytes, at[top - 1].data(), at[top].data(), at[top - 1].data());
  }
  at.resize(PartsOf(owned, share.slices).size());
  return at;
}

// The sum as every rank has it.
std::vector<Bytes> SumsOf(int64_t slices, int ranks, int most_delay_us, bool narrow = false,
                          int64_t segment_bytes = 0) {
  const SumBlock block = Block(narrow, segment_bytes);
  std::vector<Bytes> sums(static_cast<size_t>(ranks));
  RunRanks(
      ranks,
      [&](Communicator& communicator) {
        const SliceShare share = {slices, communicator.rank(), ranks};
        std::vector<Bytes> parts = PartsOfRank(share, block);
        Bytes scratch(static_cast<size_t>(SumScratchBytes(share, block.wire())));
        TreeSum::Place place;
        for (Bytes& part : parts) place.parts.push_back(part.data());
        place.scratch = scratch.data();
        TreeSum sum(communicator, share, block, place);
        const auto in_any_order = [](const TreeSum::Work& work) {
          for (const int piece : {1, 0, 2}) work(piece, 3);
        };
        EXPECT_TRUE(sum.Run(in_any_order).ok());
        EXPECT_EQ(communicator.sent_bytes(), SentBytes(share, block.wire()));
        sums[static_cast<size_t>(communicator.rank())] = parts.front();
      },
      most_delay_us);
  return sums;
}

// The bits of the values; what lies between them is nobody's.
std::string BitsOf(const Bytes& bytes) {
  std::string text;
  for (const SumBlock::Values& values : Block().values)
    text.append(reinterpret_cast<const char*>(bytes.data()) + values.offset_bytes,
                static_cast<size_t>(values.elements * BytesPerElement(values.dtype)));
  return text;
}

TEST(TreeSumTest, TheBitsDoNotDependOnTheNumberOfRanks) {
  for (const bool narrow : {false, true}) {
    for (const int64_t slices : {8, 11, 12}) {
      const Bytes alone = SumsOf(slices, 1, 0, narrow).front();
      for (const int ranks : {2, 3, 4, 6, 8}) {
        for (const Bytes& sum : SumsOf(slices, ranks, /*most_delay_us=*/300, narrow))
          EXPECT_EQ(BitsOf(sum), BitsOf(alone)) << slices << " slices on " << ranks << " ranks";
      }
    }
  }
}

TEST(TreeSumTest, TheBitsDoNotDependOnTheSegments) {
  for (const bool narrow : {false, true}) {
    const Bytes alone = SumsOf(11, 1, 0, narrow).front();
    for (const int64_t segment_bytes : {64, 832, 4160, 12608, 65536}) {
      for (const Bytes& sum : SumsOf(11, 3, /*most_delay_us=*/20, narrow, segment_bytes))
        EXPECT_EQ(BitsOf(sum), BitsOf(alone)) << "segments of " << segment_bytes << " bytes";
    }
  }
}

TEST(TreeSumTest, NarrowSumsAreBF16AndCloseToWideOnes) {
  const Bytes narrow = SumsOf(8, 3, 0, /*narrow=*/true).back(), wide = SumsOf(8, 3, 0).back();
  double most = 0;
  for (int64_t i = 0; i < 1000; ++i) {
    const double sum = LoadAsDouble(DType::kF32, narrow.data(), i);
    EXPECT_EQ(sum, BF16ToFloat(FloatToBF16(static_cast<float>(sum))));
    most = std::max(most, std::abs(sum - LoadAsDouble(DType::kF32, wide.data(), i)));
  }
  EXPECT_GT(most, 0);
  EXPECT_LT(most, 4 * 8000 * 0x1p-9);  // four roundings of sums below 8000
}

// Infinity and NaN stay what they are.
TEST(TreeSumTest, NarrowSumsKeepWhatIsNotFinite) {
  const SumBlock block = {{{0, 16, DType::kF32, true}}, 64};
  std::vector<float> a(16, 1.0F), b(16, 2.0F), sum(16);
  a[1] = std::numeric_limits<float>::infinity();
  b[2] = std::numeric_limits<float>::quiet_NaN();
  a[3] = std::bit_cast<float>(0x7F800001U);  // its payload is in the bits that are cut off
  AddSums(block, 0, 64, reinterpret_cast<const std::byte*>(a.data()),
          reinterpret_cast<const std::byte*>(b.data()), reinterpret_cast<std::byte*>(sum.data()));
  EXPECT_EQ(sum[0], 3.0F);
  EXPECT_EQ(sum[1], std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(sum[2]) && std::isnan(sum[3]));
}

TEST(TreeSumTest, WholeNumbersAreExact) {
  const Bytes sum = SumsOf(8, 3, 0).back();
  int64_t expected = 0, number = 0;
  for (int64_t slice = 0; slice < 8; ++slice) {
    std::memcpy(&number, RandomSlice(slice).data() + 4096, sizeof(number));
    expected += number;
  }
  std::memcpy(&number, sum.data() + 4096, sizeof(number));
  EXPECT_EQ(number, expected);
}

TEST(TreeSumTest, OtherTypesAreRefused) {
  SumBlock block = Block();
  EXPECT_TRUE(CheckSums(block).ok());
  block.values[1].dtype = DType::kBF16;
  EXPECT_EQ(CheckSums(block).message(),
            "a sum in a tree is bf16; it must be f64, f32, i64 or i32. hint: --sums running");
}

}  // namespace
}  // namespace ridge
