#include "ridge/core/slice_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>

namespace ridge {
namespace {

std::string Node(const SliceRange& node) {
  if (node.count() == 1) return std::to_string(node.first);
  const int64_t cut = CutOf(node);
  return "(" + Node({node.first, cut}) + "+" + Node({cut, node.end}) + ")";
}

// The sum that the folds of every rank and then the tree over the parts write down.
std::string SumOfRanks(int ranks, int64_t slices, const std::vector<int64_t>& dealt = {}) {
  std::vector<SliceRange> parts;
  std::vector<std::string> sums;
  for (int rank = 0; rank < ranks; ++rank) {
    const SliceRange owned = SliceShare{slices, rank, ranks, dealt}.owned();
    const std::vector<SliceFold> folds = FoldsOf(owned, slices);
    std::vector<std::string> at(static_cast<size_t>(PositionsOf(folds)));
    size_t top = 0;
    for (int64_t slice = owned.first; slice < owned.end; ++slice) {
      const SliceFold& fold = folds[static_cast<size_t>(slice - owned.first)];
      top = static_cast<size_t>(fold.position);
      at[top] = std::to_string(slice);
      for (int64_t i = 0; i < fold.additions; ++i, --top)
        at[top - 1] = "(" + at[top - 1] + "+" + at[top] + ")";
    }
    const std::vector<SliceRange> own = PartsOf(owned, slices);
    EXPECT_EQ(own.size(), top + 1) << slices << " slices on " << ranks << " ranks";
    for (size_t i = 0; i <= top && i < own.size(); ++i) EXPECT_EQ(at[i], Node(own[i]));
    sums.insert(sums.end(), at.begin(), at.begin() + static_cast<std::ptrdiff_t>(top) + 1);
    parts.insert(parts.end(), own.begin(), own.end());
  }
  for (size_t i = 1; i < parts.size();) {
    if (!IsNode({parts[i - 1].first, parts[i].end}, slices)) {
      ++i;
      continue;
    }
    sums[i - 1] = "(" + sums[i - 1] + "+" + sums[i] + ")";
    parts[i - 1].end = parts[i].end;
    sums.erase(sums.begin() + static_cast<std::ptrdiff_t>(i));
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i));
    i = std::max<size_t>(1, i - 1);
  }
  return parts.size() == 1 ? sums[0] : "no sum";
}

TEST(SliceTreeTest, ANodeIsCutAtTheLargestPowerOfTwoBelowItsLength) {
  EXPECT_EQ(Node({0, 8}), "(((0+1)+(2+3))+((4+5)+(6+7)))");
  EXPECT_EQ(Node({0, 3}), "((0+1)+2)");
  EXPECT_EQ(Node({0, 7}), "(((0+1)+(2+3))+((4+5)+6))");
}

TEST(SliceTreeTest, TheSumIsTheSameForEveryNumberOfRanks) {
  for (int64_t slices = 1; slices <= 33; ++slices) {
    for (int ranks = 1; ranks <= slices; ++ranks)
      EXPECT_EQ(SumOfRanks(ranks, slices), Node({0, slices})) << ranks << " ranks";
  }
}

// Every way to share out up to 12 slices to three ranks.
TEST(SliceTreeTest, TheSumIsTheSameForEveryDeal) {
  for (int64_t slices = 3; slices <= 12; ++slices) {
    for (int64_t first = 1; first <= slices - 2; ++first) {
      for (int64_t second = 1; second <= slices - first - 1; ++second) {
        const std::vector<int64_t> dealt = {first, second, slices - first - second};
        EXPECT_EQ(SumOfRanks(3, slices, dealt), Node({0, slices})) << first << ", " << second;
      }
    }
  }
}

TEST(SliceTreeTest, SlicesAreDealtInProportionAndEveryRankHasOne) {
  using Deal = std::vector<int64_t>;
  EXPECT_EQ(DealSlices(8, {3, 1}), (Deal{6, 2}));
  EXPECT_EQ(DealSlices(8, {1, 3}), (Deal{2, 6}));
  EXPECT_EQ(DealSlices(32, {100, 37, 37}), (Deal{18, 7, 7}));
  EXPECT_EQ(DealSlices(8, {1, 1, 1}), (Deal{3, 3, 2}));  // equal remainders go to lower ranks
  EXPECT_EQ(DealSlices(4, {1000, 1, 1}), (Deal{2, 1, 1}));
  EXPECT_EQ(DealSlices(3, {1, 1000000, 1}), (Deal{1, 1, 1}));
  for (int64_t part = 1; part <= 40; ++part) {
    const Deal dealt = DealSlices(16, {part, 7, 2, 11});
    EXPECT_EQ(std::accumulate(dealt.begin(), dealt.end(), int64_t{0}), 16) << part;
    EXPECT_GE(*std::min_element(dealt.begin(), dealt.end()), 1) << part;
  }
}

TEST(SliceTreeTest, RanksOwnAllSlicesInOrder) {
  for (int ranks = 1; ranks <= 12; ++ranks) {
    int64_t next = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const SliceRange owned = SliceShare{12, rank, ranks}.owned();
      EXPECT_EQ(owned.first, next);
      EXPECT_GT(owned.count(), 0);
      next = owned.end;
    }
    EXPECT_EQ(next, 12);
  }
}

TEST(SliceTreeTest, EightSlicesNeedAsManySumsAsTheirLogarithmAndOne) {
  const auto positions = [](int ranks) {
    int64_t most = 0;
    for (int rank = 0; rank < ranks; ++rank)
      most = std::max(most, PositionsOf(FoldsOf(SliceShare{8, rank, ranks}.owned(), 8)));
    return most;
  };
  EXPECT_EQ(positions(1), 4);
  EXPECT_EQ(positions(2), 3);
  EXPECT_EQ(positions(4), 2);
  EXPECT_EQ(positions(8), 1);
}

TEST(SliceTreeTest, ChunksAreWholeLinesThatCoverTheBlock) {
  for (const int64_t bytes : {int64_t{0}, int64_t{64}, int64_t{1000}, int64_t{1} << 20}) {
    for (int ranks = 1; ranks <= 8; ++ranks) {
      int64_t next = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const ByteRange chunk = ChunkOf(rank, ranks, bytes);
        EXPECT_EQ(chunk.begin, next);
        EXPECT_TRUE(chunk.begin == bytes || chunk.begin % kChunkLine == 0);
        next = chunk.end;
      }
      EXPECT_EQ(next, bytes);
    }
  }
}

TEST(SliceTreeTest, ThreeOfEightSlicesAreTwoNodes) {
  EXPECT_EQ(PartsOf({2, 5}, 8), (std::vector<SliceRange>{{2, 4}, {4, 5}}));
}

}  // namespace
}  // namespace ridge
