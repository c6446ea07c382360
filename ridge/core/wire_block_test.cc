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

TEST(WireBlockTest, SegmentsAreTheBlockAndNeedMemoryOfOne) {
  const WireBlock block = {1000 * 64, {{64, 500 * 64}}, 300 * 64};
  const std::vector<ByteRange> segments = block.Segments();
  ASSERT_EQ(segments.size(), 4U);
  EXPECT_EQ(segments[0], (ByteRange{0, 300 * 64}));
  EXPECT_EQ(segments[3], (ByteRange{900 * 64, 1000 * 64}));
  EXPECT_EQ(WireBlock{}.Segments().size(), 1U);

  const WireBlock wide = {block.bytes, {}, block.segment_bytes};
  for (const int ranks : {2, 3, 8}) {
    int64_t received = 0, chunks = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      for (const ByteRange& segment : segments) chunks += ChunkIn(segment, rank, ranks).bytes();
      received += ReceivedBytes({ranks, rank, ranks}, wide);
    }
    EXPECT_EQ(chunks, block.bytes);
    EXPECT_EQ(received, (ranks - 1) * block.bytes);
    EXPECT_LE(SumScratchBytes({ranks, 0, ranks}, wide), block.segment_bytes);
    EXPECT_GT(SumScratchBytes({ranks, 0, ranks}, {block.bytes}), 2 * 300 * 64 / ranks);
  }
}

}  // namespace
}  // namespace ridge
