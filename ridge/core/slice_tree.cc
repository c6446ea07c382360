#include "ridge/core/slice_tree.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "ridge/core/rounding.h"
#include "ridge/core/status.h"

namespace ridge {
namespace {

void AddParts(const SliceRange& node, const SliceRange& owned, std::vector<SliceRange>& parts) {
  if (owned.first >= node.end || owned.end <= node.first) return;
  if (owned.first <= node.first && node.end <= owned.end) {
    parts.push_back(node);
    return;
  }
  const int64_t cut = CutOf(node);
  AddParts({node.first, cut}, owned, parts);
  AddParts({cut, node.end}, owned, parts);
}

}  // namespace

SliceRange SliceShare::OwnedBy(int other) const {
  if (dealt.empty()) return {other * slices / ranks, (other + 1) * slices / ranks};
  const auto own = dealt.begin() + other;
  const int64_t first = std::accumulate(dealt.begin(), own, int64_t{0});
  return {first, first + *own};
}

std::vector<int64_t> SliceShare::Counts() const {
  std::vector<int64_t> counts;
  for (int other = 0; other < ranks; ++other) counts.push_back(OwnedBy(other).count());
  return counts;
}

std::vector<int64_t> DealSlices(int64_t slices, const std::vector<int64_t>& parts) {
  RIDGE_CHECK(static_cast<int64_t>(parts.size()) <= slices, "every rank has a slice");
  const double sum = std::accumulate(parts.begin(), parts.end(), 0.0);
  std::vector<int64_t> dealt;
  for (const int64_t part : parts) {
    const double share = static_cast<double>(slices) * static_cast<double>(part) / sum;
    dealt.push_back(std::max<int64_t>(1, static_cast<int64_t>(share)));
  }
  // How far a rank is above its share.
  const auto above = [&](size_t rank) {
    return static_cast<double>(dealt[rank]) * sum -
           static_cast<double>(slices) * static_cast<double>(parts[rank]);
  };
  int64_t left = slices - std::accumulate(dealt.begin(), dealt.end(), int64_t{0});
  for (; left != 0; left -= left > 0 ? 1 : -1) {
    size_t best = 0;
    for (size_t rank = 1; rank < parts.size(); ++rank) {
      const bool may = left > 0
                           ? above(rank) < above(best)
                           : dealt[rank] > 1 && (dealt[best] == 1 || above(rank) > above(best));
      if (may) best = rank;
    }
    dealt[best] += left > 0 ? 1 : -1;
  }
  return dealt;
}

int64_t CutOf(const SliceRange& node) {
  RIDGE_CHECK(node.count() > 1, "a slice is not cut");
  return node.first + static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(node.count() - 1)));
}

bool IsNode(const SliceRange& range, int64_t slices) {
  SliceRange node = {0, slices};
  while (node.first <= range.first && range.end <= node.end) {
    if (node == range) return true;
    if (node.count() == 1) return false;
    const int64_t cut = CutOf(node);
    node = range.first < cut ? SliceRange{node.first, cut} : SliceRange{cut, node.end};
  }
  return false;
}

std::vector<SliceRange> PartsOf(const SliceRange& owned, int64_t slices) {
  std::vector<SliceRange> parts;
  AddParts({0, slices}, owned, parts);
  return parts;
}

std::vector<SliceFold> FoldsOf(const SliceRange& owned, int64_t slices) {
  std::vector<SliceFold> folds;
  std::vector<SliceRange> sums;
  for (int64_t slice = owned.first; slice < owned.end; ++slice) {
    SliceFold fold = {static_cast<int64_t>(sums.size()), 0};
    sums.push_back({slice, slice + 1});
    while (sums.size() > 1 && IsNode({sums[sums.size() - 2].first, slice + 1}, slices)) {
      sums.pop_back();
      sums.back().end = slice + 1;
      ++fold.additions;
    }
    folds.push_back(fold);
  }
  return folds;
}

int64_t PositionsOf(const std::vector<SliceFold>& folds) {
  int64_t positions = 0;
  for (const SliceFold& fold : folds) positions = std::max(positions, fold.position + 1);
  return positions;
}

ByteRange ChunkOf(int rank, int ranks, int64_t block_bytes) {
  const int64_t lines = CeilDiv(block_bytes, kChunkLine);
  const auto begin_of = [&](int r) {
    return std::min(block_bytes, r * lines / ranks * kChunkLine);
  };
  return {begin_of(rank), begin_of(rank + 1)};
}

}  // namespace ridge
