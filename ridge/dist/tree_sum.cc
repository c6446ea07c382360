// A part of chunk j is one piece of memory: round k of Send() moves every rank's part k, and ranks
// with fewer parts send nothing in it.  Own parts are added where they lie: they have been sent by
// then.  Combine() takes a tile through the whole tree, so addends are read from memory once.
#include "ridge/dist/tree_sum.h"

#include <algorithm>
#include <array>
#include <functional>

#include "ridge/core/rounding.h"

namespace ridge {
namespace {

constexpr int64_t kTileBytes = int64_t{1} << 13;

size_t Index(int rank) { return static_cast<size_t>(rank); }

// Calls f(begin, end) for the tiles of a piece of the range.
template <typename F>
void ForEachTile(const ByteRange& range, int piece, int pieces, F f) {
  const int64_t tiles = CeilDiv(range.bytes(), kTileBytes);
  for (int64_t tile = piece * tiles / pieces; tile < (piece + 1) * tiles / pieces; ++tile) {
    const int64_t begin = range.begin + tile * kTileBytes;
    f(begin, std::min(begin + kTileBytes, range.end));
  }
}

}  // namespace

TreeSum::TreeSum(Communicator& communicator, const SliceShare& share, SumBlock block, Place place)
    : communicator_(communicator),
      share_(share),
      block_(std::move(block)),
      wire_(block_.wire()),
      packs_(!wire_.goes_as_it_lies()),
      place_(std::move(place)),
      sends_(Index(share.ranks)),
      receives_(Index(share.ranks)) {
  RIDGE_CHECK(communicator.rank() == share.rank && communicator.size() == share.ranks,
              "a rank sums its own share");
  for (int rank = 0; rank < share.ranks; ++rank)
    parts_.push_back(PartsOf(share.OwnedBy(rank), share.slices));
  RIDGE_CHECK(place_.parts.size() == parts_[Index(share.rank)].size(), "every part has a place");
  for (const ByteRange& all : wire_.Segments()) segments_.push_back(SegmentOf(all));
}

TreeSum::Segment TreeSum::SegmentOf(const ByteRange& all) const {
  Segment segment;
  segment.all = all;
  segment.own = ChunkIn(all, share_.rank, share_.ranks);
  PlaceAddends(segment);
  ListAdditions(segment);
  return segment;
}

// Received parts have room for a chunk, one behind the other; behind them is the packed segment.
void TreeSum::PlaceAddends(Segment& segment) const {
  std::byte* next = place_.scratch;
  for (int rank = 0; rank < share_.ranks; ++rank) {
    std::vector<Addend>& addends = segment.addends.emplace_back();
    for (size_t k = 0; k < parts_[Index(rank)].size(); ++k) {
      const bool own = rank == share_.rank;
      std::byte* received = next - wire_.WireOffset(segment.own.begin);
      addends.push_back(own ? Addend{place_.parts[k]} : Addend{received, packs_});
      if (!own) next += wire_.WireBytes(segment.own);
    }
  }
  segment.packed = next - wire_.WireOffset(segment.all.begin);
}

// The parts of all ranks as a stack: its last two are added while they make a node.
void TreeSum::ListAdditions(Segment& segment) const {
  std::vector<SliceRange> sums;
  std::vector<Addend> at;
  for (size_t rank = 0; rank < parts_.size(); ++rank) {
    for (size_t k = 0; k < parts_[rank].size(); ++k) {
      sums.push_back(parts_[rank][k]);
      at.push_back(segment.addends[rank][k]);
      while (sums.size() > 1 &&
             IsNode({sums[sums.size() - 2].first, sums.back().end}, share_.slices)) {
        segment.additions.push_back({at[at.size() - 2], at.back(), at[at.size() - 2]});
        sums[sums.size() - 2].end = sums.back().end;
        sums.pop_back();
        at.pop_back();
      }
    }
  }
  RIDGE_CHECK(sums.size() == 1, "the parts of all ranks are one sum");
  if (!segment.additions.empty()) segment.additions.back().to = {place_.parts.front()};
}

void TreeSum::ClearSpans() {
  std::fill(sends_.begin(), sends_.end(), std::span<const std::byte>());
  std::fill(receives_.begin(), receives_.end(), std::span<std::byte>());
}

Status TreeSum::Run(const Team& team) {
  for (const Segment& segment : segments_) RIDGE_RETURN_IF_ERROR(RunSegment(segment, team));
  return Status();
}

Status TreeSum::RunSegment(const Segment& segment, const Team& team) {
  RIDGE_RETURN_IF_ERROR(Send(segment, team));
  team([&](int piece, int pieces) { Combine(segment, piece, pieces); });
  RIDGE_RETURN_IF_ERROR(Gather(segment));
  if (packs_) team([&](int piece, int pieces) { Unpack(segment, piece, pieces); });
  return Status();
}

Status TreeSum::Run(const Add& add) {
  RIDGE_CHECK(!packs_ && segments_.size() == 1, "the device has the block as it lies, and whole");
  const Segment& block = segments_.front();
  RIDGE_RETURN_IF_ERROR(Send(block, Team()));
  for (const Addition& addition : block.additions)
    RIDGE_RETURN_IF_ERROR(add(addition.left.at, addition.right.at, addition.to.at));
  return Gather(block);
}

Status TreeSum::Send(const Segment& segment, const Team& team) {
  size_t rounds = 0;
  for (const std::vector<SliceRange>& of_rank : parts_) rounds = std::max(rounds, of_rank.size());
  for (size_t k = 0; k < rounds; ++k) {
    const auto pack = [&](int piece, int pieces) { Pack(segment, k, piece, pieces); };
    if (packs_ && k < place_.parts.size()) team(std::cref(pack));  // a copy would be allocated
    RIDGE_RETURN_IF_ERROR(SendRound(segment, k));
  }
  return Status();
}

Status TreeSum::SendRound(const Segment& segment, size_t k) {
  ClearSpans();
  for (int other = 0; other < share_.ranks; ++other) {
    if (other == share_.rank) continue;
    if (k < place_.parts.size()) {
      sends_[Index(other)] = Sent(Outgoing(segment, place_.parts[k]), ChunkOfRank(segment, other));
    }
    if (k < parts_[Index(other)].size())
      receives_[Index(other)] = Sent(segment.addends[Index(other)][k].at, segment.own);
  }
  return communicator_.Exchange(sends_, receives_);
}

// What the others add up of part k.
void TreeSum::Pack(const Segment& segment, size_t k, int piece, int pieces) const {
  const auto pack = [&](int64_t begin, int64_t end) {
    PackSums(wire_, begin, end, place_.parts[k], segment.packed);
  };
  ForEachTile({segment.all.begin, segment.own.begin}, piece, pieces, pack);
  ForEachTile({segment.own.end, segment.all.end}, piece, pieces, pack);
}

void TreeSum::Combine(const Segment& segment, int piece, int pieces) const {
  ForEachTile(segment.own, piece, pieces, [&](int64_t begin, int64_t end) {
    for (const Addition& addition : segment.additions) AddTile(addition, begin, end);
    if (packs_) PackSums(wire_, begin, end, place_.parts.front(), segment.packed);
  });
}

// Of a tile.
void TreeSum::AddTile(const Addition& addition, int64_t begin, int64_t end) const {
  alignas(kChunkLine) std::array<std::array<std::byte, kTileBytes>, 2> tiles;
  const auto unpacked = [&](const Addend& addend, size_t i) -> std::byte* {
    if (!addend.packed) return addend.at;
    std::byte* at = tiles[i].data() - begin;
    UnpackSums(wire_, begin, end, addend.at, at);
    return at;
  };
  const std::byte* left = unpacked(addition.left, 0);
  const std::byte* right = unpacked(addition.right, 1);
  std::byte* to = addition.to.packed ? tiles[0].data() - begin : addition.to.at;
  AddSums(block_, begin, end, left, right, to);
  if (addition.to.packed) PackSums(wire_, begin, end, to, addition.to.at);
}

Status TreeSum::Gather(const Segment& segment) {
  ClearSpans();
  std::byte* sum = Outgoing(segment, place_.parts.front());
  for (int other = 0; other < share_.ranks; ++other) {
    if (other == share_.rank) continue;
    sends_[Index(other)] = Sent(sum, segment.own);
    receives_[Index(other)] = Sent(sum, ChunkOfRank(segment, other));
  }
  return communicator_.Exchange(sends_, receives_);
}

// The others' chunks of the sum.
void TreeSum::Unpack(const Segment& segment, int piece, int pieces) const {
  const auto unpack = [&](int64_t begin, int64_t end) {
    UnpackSums(wire_, begin, end, segment.packed, place_.parts.front());
  };
  ForEachTile({segment.all.begin, segment.own.begin}, piece, pieces, unpack);
  ForEachTile({segment.own.end, segment.all.end}, piece, pieces, unpack);
}

}  // namespace ridge
