#include "ridge/dist/tree_sum.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "ridge/core/rounding.h"
#include "ridge/dist/test_ranks.h"

namespace ridge {
namespace {

// 1000 f32, 3 f64 and 5 i64, each from a new line on.
SumBlock Block() {
  SumBlock block;
  block.values = {{0, 1000, DType::kF32}, {4032, 3, DType::kF64}, {4096, 5, DType::kI64}};
  block.bytes = 4160;
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
std::vector<Bytes> PartsOfRank(const SliceShare& share) {
  const SumBlock block = Block();
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
std::vector<Bytes> SumsOf(int64_t slices, int ranks, int most_delay_us) {
  std::vector<Bytes> sums(static_cast<size_t>(ranks));
  RunRanks(
      ranks,
      [&](Communicator& communicator) {
        const SliceShare share = {slices, communicator.rank(), ranks};
        std::vector<Bytes> parts = PartsOfRank(share);
        Bytes scratch(static_cast<size_t>(ReceivedBytes(share, Block().bytes)));
        TreeSum::Place place;
        for (Bytes& part : parts) place.parts.push_back(part.data());
        place.scratch = scratch.data();
        TreeSum sum(communicator, share, Block(), place);
        EXPECT_TRUE(sum.Send().ok());
        for (const int piece : {1, 0, 2}) sum.Combine(piece, 3);
        EXPECT_TRUE(sum.Gather().ok());
        EXPECT_EQ(communicator.sent_bytes(), SentBytes(share, Block().bytes));
        sums[static_cast<size_t>(communicator.rank())] = parts.front();
      },
      most_delay_us);
  return sums;
}

TEST(TreeSumTest, TheBitsDoNotDependOnTheNumberOfRanks) {
  for (const int64_t slices : {8, 11, 12}) {
    const Bytes alone = SumsOf(slices, 1, 0).front();
    for (const int ranks : {2, 3, 4, 6, 8}) {
      const std::vector<Bytes> sums = SumsOf(slices, ranks, /*most_delay_us=*/300);
      for (const Bytes& sum : sums)
        EXPECT_EQ(sum, alone) << slices << " slices on " << ranks << " ranks";
    }
  }
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
