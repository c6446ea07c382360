// SliceTree: the order in which the parts of a batch are added up, whatever number of ranks
// computes them.
//
// A batch has S slices.  Node [first, end) of the tree is slice `first` where it is one, else the
// sum of its two halves, cut at `first` plus the largest power of two below end - first.  Rank r of
// N owns the slices [floor(rS/N), floor((r+1)S/N)), or as many as it is dealt; its parts are the
// largest nodes within.  Every addition is one of the tree, so the sum of all slices has the same
// bits for every N and every deal.
//
// A rank adds its slices as a binary counter counts: slice after slice lies behind what is there,
// and the last two are added while they make a node.  What is left are the parts, in order.
//
// Of a block of bytes that the ranks hold, chunk r is what rank r adds up for all.
#pragma once
#include <cstdint>
#include <vector>

namespace ridge {

struct SliceRange {
  int64_t first = 0;
  int64_t end = 0;
  int64_t count() const { return end - first; }
  bool operator==(const SliceRange&) const = default;
};

// A rank's share of a batch.
struct SliceShare {
  int64_t slices = 1;  // of the batch
  int rank = 0;
  int ranks = 1;  // at most as many as slices
  // Of each rank, at least one, `slices` together; empty: as equal as they can be.
  std::vector<int64_t> dealt = {};

  SliceRange owned() const { return OwnedBy(rank); }
  // The samples of the owned slices.  REQUIRES: the slices divide the batch.
  SliceRange OwnedSamples(int64_t batch) const {
    return {owned().first * (batch / slices), owned().end * (batch / slices)};
  }
  SliceRange OwnedBy(int other) const;
  std::vector<int64_t> Counts() const;  // slices of each rank
  bool operator==(const SliceShare&) const = default;
};

// Deals slices to ranks in proportion to their parts, by largest remainder, equal ones to the lower
// rank, at least one each.  REQUIRES: parts above 0, at most as many as slices.
std::vector<int64_t> DealSlices(int64_t slices, const std::vector<int64_t>& parts);

// Where the node is cut.  REQUIRES: it has more than one slice.
int64_t CutOf(const SliceRange& node);
// Whether the range is a node of the tree over `slices`.
bool IsNode(const SliceRange& range, int64_t slices);

// The largest nodes within `owned`, in order.
std::vector<SliceRange> PartsOf(const SliceRange& owned, int64_t slices);

// What happens to a slice that was computed: it lies at `position`, then the last two sums are
// added `additions` times, the later one to the one before it.
struct SliceFold {
  int64_t position = 0;
  int64_t additions = 0;
  bool operator==(const SliceFold&) const = default;
};
// By slice of `owned`.
std::vector<SliceFold> FoldsOf(const SliceRange& owned, int64_t slices);
// How many sums exist at once: at most the logarithm of the slices, and one.
int64_t PositionsOf(const std::vector<SliceFold>& folds);

// Offsets are from the block's start; a chunk is whole lines of 64 bytes, but for the last.
inline constexpr int64_t kChunkLine = 64;
struct ByteRange {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t bytes() const { return end - begin; }
  bool operator==(const ByteRange&) const = default;
};
ByteRange ChunkOf(int rank, int ranks, int64_t block_bytes);

}  // namespace ridge
