// A part of chunk j is one piece of memory, so nothing is packed: round k of Send() moves every
// rank's part k, and ranks with fewer parts send nothing in it.  Own parts are added where they
// lie: they have been sent by then.  Combine() takes a tile through the whole tree, so addends are
// read from memory once.
#include "ridge/dist/tree_sum.h"

#include <algorithm>
#include <cstring>

#include "ridge/core/rounding.h"

namespace ridge {
namespace {

constexpr int64_t kTileBytes = int64_t{1} << 13;

size_t Index(int rank) { return static_cast<size_t>(rank); }

}  // namespace

TreeSum::TreeSum(Communicator& communicator, const SliceShare& share, SumBlock block, Place place)
    : communicator_(communicator),
      share_(share),
      block_(std::move(block)),
      place_(std::move(place)),
      chunk_(ChunkOf(share.rank, share.ranks, block_.bytes)),
      sends_(Index(share.ranks)),
      receives_(Index(share.ranks)) {
  RIDGE_CHECK(communicator.rank() == share.rank && communicator.size() == share.ranks,
              "a rank sums its own share");
  for (int rank = 0; rank < share.ranks; ++rank)
    parts_.push_back(PartsOf(share.OwnedBy(rank), share.slices));
  RIDGE_CHECK(place_.parts.size() == parts_[Index(share.rank)].size(), "every part has a place");
  PlaceAddends();
  ListAdditions();
}

// Received parts have room for a chunk, one behind the other.
void TreeSum::PlaceAddends() {
  std::byte* next = place_.scratch;
  for (int rank = 0; rank < share_.ranks; ++rank) {
    addends_.emplace_back();
    for (size_t k = 0; k < parts_[Index(rank)].size(); ++k) {
      const bool own = rank == share_.rank;
      addends_.back().push_back(own ? place_.parts[k] : next - chunk_.begin);
      if (!own) next += chunk_.bytes();
    }
  }
}

// The parts of all ranks as a stack: its last two are added while they make a node.
void TreeSum::ListAdditions() {
  std::vector<SliceRange> sums;
  std::vector<std::byte*> at;
  for (size_t rank = 0; rank < parts_.size(); ++rank) {
    for (size_t k = 0; k < parts_[rank].size(); ++k) {
      sums.push_back(parts_[rank][k]);
      at.push_back(addends_[rank][k]);
      while (sums.size() > 1 &&
             IsNode({sums[sums.size() - 2].first, sums.back().end}, share_.slices)) {
        additions_.push_back({at[at.size() - 2], at.back(), at[at.size() - 2]});
        sums[sums.size() - 2].end = sums.back().end;
        sums.pop_back();
        at.pop_back();
      }
    }
  }
  RIDGE_CHECK(sums.size() == 1, "the parts of all ranks are one sum");
  if (!additions_.empty()) additions_.back().to = place_.parts.front();
}

void TreeSum::ClearSpans() {
  std::fill(sends_.begin(), sends_.end(), std::span<const std::byte>());
  std::fill(receives_.begin(), receives_.end(), std::span<std::byte>());
}

Status TreeSum::Send() {
  size_t rounds = 0;
  for (const std::vector<SliceRange>& of_rank : parts_) rounds = std::max(rounds, of_rank.size());
  for (size_t k = 0; k < rounds; ++k) {
    ClearSpans();
    for (int other = 0; other < share_.ranks; ++other) {
      if (other == share_.rank) continue;
      const ByteRange theirs = ChunkOf(other, share_.ranks, block_.bytes);
      if (k < place_.parts.size())
        sends_[Index(other)] = {place_.parts[k] + theirs.begin,
                                static_cast<size_t>(theirs.bytes())};
      if (k < parts_[Index(other)].size())
        receives_[Index(other)] = {addends_[Index(other)][k] + chunk_.begin,
                                   static_cast<size_t>(chunk_.bytes())};
    }
    RIDGE_RETURN_IF_ERROR(communicator_.Exchange(sends_, receives_));
  }
  return Status();
}

void TreeSum::Combine(int piece, int pieces) const {
  const int64_t tiles = CeilDiv(chunk_.bytes(), kTileBytes);
  for (int64_t tile = piece * tiles / pieces; tile < (piece + 1) * tiles / pieces; ++tile) {
    const int64_t begin = chunk_.begin + tile * kTileBytes;
    const int64_t end = std::min(begin + kTileBytes, chunk_.end);
    for (const Addition& addition : additions_)
      AddSums(block_, begin, end, addition.left, addition.right, addition.to);
  }
}

Status TreeSum::Gather() {
  ClearSpans();
  std::byte* sum = place_.parts.front();
  for (int other = 0; other < share_.ranks; ++other) {
    if (other == share_.rank) continue;
    const ByteRange theirs = ChunkOf(other, share_.ranks, block_.bytes);
    sends_[Index(other)] = {sum + chunk_.begin, static_cast<size_t>(chunk_.bytes())};
    receives_[Index(other)] = {sum + theirs.begin, static_cast<size_t>(theirs.bytes())};
  }
  return communicator_.Exchange(sends_, receives_);
}

}  // namespace ridge
