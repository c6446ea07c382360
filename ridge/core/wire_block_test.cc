#include "ridge/core/wire_block.h"

#include <gtest/gtest.h>

namespace ridge {
namespace {

TEST(WireBlockTest, PowersOfTwoSendWhatARingSends) {
  const WireBlock block = {1 << 20};
  EXPECT_EQ(SentBytes({8, 0, 1}, block), 0);
  EXPECT_EQ(SentBytes({8, 1, 2}, block), block.bytes);  // 2 (N - 1) / N
  EXPECT_EQ(SentBytes({8, 3, 4}, block), 3 * block.bytes / 2);
  EXPECT_EQ(ReceivedBytes({8, 0, 2}, block), block.bytes / 2);
  EXPECT_EQ(ReceivedBytes({8, 0, 8}, block), 7 * block.bytes / 8);
  EXPECT_EQ(SumScratchBytes({8, 0, 8}, block), 7 * block.bytes / 8);
}

TEST(WireBlockTest, NarrowRangesHalveTheirBytes) {
  const WireBlock block = {1024, {{64, 192}, {512, 1024}}};
  EXPECT_EQ(block.WireOffset(0), 0);
  EXPECT_EQ(block.WireOffset(64), 64);
  EXPECT_EQ(block.WireOffset(128), 96);
  EXPECT_EQ(block.WireOffset(512), 448);
  EXPECT_EQ(block.WireOffset(1024), 704);
  EXPECT_EQ(block.WireBytes({128, 576}), 448 + 32 - 96);
}

TEST(WireBlockTest, AllNarrowSendsHalf) {
  const WireBlock block = {1 << 20, {{0, 1 << 20}}};
  for (const int ranks : {2, 3, 8}) {
    for (int rank = 0; rank < ranks; ++rank) {
      const SliceShare share = {12, rank, ranks};
      EXPECT_EQ(2 * SentBytes(share, block), SentBytes(share, {block.bytes}));
      EXPECT_EQ(SumScratchBytes(share, block), ReceivedBytes(share, block) + block.bytes / 2);
    }
  }
}

}  // namespace
}  // namespace ridge
