#include "ridge/partition/split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "ridge/partition/reshard.h"

namespace ridge {
namespace {

using testing::ElementsAre;

const Mesh kMesh{{{"d", 2}, {"t", 2}}};
constexpr int kD = 0, kT = 1;

Split Of(std::initializer_list<Cut> cuts) {
  Split split;
  for (const Cut& cut : cuts) split.Add(cut);
  return split;
}

TEST(Split, KeepsAPartOfEveryBlock) {
  const Split heads = Of({{0, kT, 3}});
  EXPECT_THAT(PlacesOfPart({12}, heads, kMesh, {0, 1}), ElementsAre(2, 3, 6, 7, 10, 11));
  EXPECT_EQ(LocalDims({12}, heads, kMesh), Dims{6});
}

// A merged dimension [B,T] of which both factors are cut.
TEST(Split, NestsTheCutsOfOneDimension) {
  const Split rows = Of({{0, kD, 1}, {0, kT, 4}});
  EXPECT_THAT(PlacesOfPart({16}, rows, kMesh, {1, 0}), ElementsAre(8, 9, 12, 13));
  EXPECT_EQ(LocalBlocks(rows, rows.cuts[0], kMesh), 1);
  EXPECT_EQ(LocalBlocks(rows, rows.cuts[1], kMesh), 2);
  EXPECT_FALSE(CanCut({16}, Of({{0, kD, 1}}), {0, kT, 1}, kMesh));  // the same factor twice
  EXPECT_TRUE(CanCut({16}, Of({{0, kD, 1}}), {0, kT, 2}, kMesh));
}

TEST(Split, NeedsEvenExtentsAndFreeAxes) {
  EXPECT_FALSE(CanCut({7, 4}, {}, {0, kD, 1}, kMesh));
  EXPECT_FALSE(CanCut({6, 4}, {}, {0, kD, 2}, kMesh));
  EXPECT_FALSE(CanCut({6, 4}, Of({{1, kD, 1}}), {0, kD, 1}, kMesh));
  EXPECT_FALSE(CanCut({0, 4}, {}, {0, kD, 1}, kMesh));
  EXPECT_FALSE(CanCut({4}, {}, {1, kD, 1}, kMesh));
  Split pending;
  pending.AddPending({kD, Factor::Over::kSum});
  EXPECT_FALSE(CanCut({4}, pending, {0, kD, 1}, kMesh));
}

TEST(Split, IsPrinted) {
  Split split = Of({{0, kD, 1}, {2, kT, 3}});
  EXPECT_EQ(SplitText(split, 3, kMesh), "[d,-,t/3]");
  split.Remove(kD);
  split.AddPending({kD, Factor::Over::kMax});
  EXPECT_EQ(SplitText(split, 3, kMesh), "[-,-,t/3] + max d");
  EXPECT_EQ(SplitText(Of({{0, kD, 1}, {0, kT, 2}}), 1, kMesh), "[d*t/2]");
}

// ---- moves

// Every way in which two axes can cut [8, 12] or leave a sum pending.
std::vector<Split> AllSplits() {
  const Dims dims = {8, 12};
  std::vector<Split> splits = {{}};
  for (int axis : {kD, kT}) {
    for (const Split& before : std::vector<Split>(splits)) {
      Split pending = before;
      pending.AddPending({axis, Factor::Over::kSum});
      splits.push_back(pending);
      for (int dim : {0, 1}) {
        for (int64_t blocks : {1, 2, 3, 4, 6}) {
          const Cut cut{dim, axis, blocks};
          if (!CanCut(dims, before, cut, kMesh)) continue;
          Split with = before;
          with.Add(cut);
          splits.push_back(with);
        }
      }
    }
  }
  return splits;
}

bool CanReach(const Split& have, const Split& want) {
  return std::all_of(want.pending.begin(), want.pending.end(),
                     [&](const PendingAxis& p) { return have.PendingBy(p.axis) != nullptr; });
}

TEST(Moves, LeadFromEverySplitToEveryOther) {
  const std::vector<Split> splits = AllSplits();
  EXPECT_GT(splits.size(), 60u);
  for (const Split& have : splits) {
    for (const Split& want : splits) {
      if (!CanReach(have, want)) continue;
      const std::vector<Move> moves = MovesBetween({8, 12}, have, want, kMesh);
      EXPECT_EQ(moves.empty(), have == want);
      Split now = have;
      for (const Move& move : moves) {
        EXPECT_EQ(move.before, now);
        now = move.after;
      }
      EXPECT_EQ(now, want) << SplitText(have, 2, kMesh) << " to " << SplitText(want, 2, kMesh);
    }
  }
}

std::vector<Move::Kind> KindsBetween(const Split& have, const Split& want) {
  std::vector<Move::Kind> kinds;
  for (const Move& move : MovesBetween({8, 12}, have, want, kMesh)) kinds.push_back(move.kind);
  return kinds;
}

TEST(Moves, AreTheFewestOfTheirKind) {
  Split sum;
  sum.AddPending({kD, Factor::Over::kSum});
  EXPECT_THAT(KindsBetween(sum, {}), ElementsAre(Move::Kind::kAllReduce));
  EXPECT_THAT(KindsBetween(sum, Of({{0, kD, 1}})), ElementsAre(Move::Kind::kReduceScatter));
  EXPECT_THAT(KindsBetween(Of({{0, kD, 1}}), {}), ElementsAre(Move::Kind::kAllGather));
  EXPECT_THAT(KindsBetween(Of({{0, kD, 1}}), Of({{1, kD, 1}})), ElementsAre(Move::Kind::kAllToAll));
  EXPECT_THAT(KindsBetween({}, Of({{1, kD, 1}})), ElementsAre(Move::Kind::kLocalPart));
}

// What is cut anyway is cut before it is sent.
TEST(Moves, CutBeforeTheySend) {
  Split sum;
  sum.AddPending({kD, Factor::Over::kSum});
  EXPECT_THAT(KindsBetween(sum, Of({{1, kT, 1}})),
              ElementsAre(Move::Kind::kLocalPart, Move::Kind::kAllReduce));
}

}  // namespace
}  // namespace ridge
