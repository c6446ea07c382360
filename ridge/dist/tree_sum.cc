// A part of chunk j is one piece of memory: round k of Send() moves every rank's part k, and ranks
// with fewer parts send nothing in it.  Own parts are added where they lie: they have been sent by
// then.  Combine() takes a tile through the whole tree, so addends are read from memory once.
#include "ridge/dist/tree_sum.h"

#include <algorithm>
#include <array>

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

// Received parts have room for a chunk, one behind the other; behind them is the packed block.
void TreeSum::PlaceAddends() {
  std::byte* next = place_.scratch;
  for (int rank = 0; rank < share_.ranks; ++rank) {
    addends_.emplace_back();
    for (size_t k = 0; k < parts_[Index(rank)].size(); ++k) {
      const bool own = rank == share_.rank;
      std::byte* received = next - wire_.WireOffset(chunk_.begin);
      addends_.back().push_back(own ? Addend{place_.parts[k]} : Addend{received, packs_});
      if (!own) next += wire_.WireBytes(chunk_);
    }
  }
  packed_ = next;
}

// The parts of all ranks as a stack: its last two are added while they make a node.
void TreeSum::ListAdditions() {
  std::vector<SliceRange> sums;
  std::vector<Addend> at;
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
  if (!additions_.empty()) additions_.back().to = {place_.parts.front()};
}

void TreeSum::ClearSpans() {
  std::fill(sends_.begin(), sends_.end(), std::span<const std::byte>());
  std::fill(receives_.begin(), receives_.end(), std::span<std::byte>());
}

Status TreeSum::Run(const Team& team) {
  RIDGE_RETURN_IF_ERROR(Send(team));
  team([this](int piece, int pieces) { Combine(piece, pieces); });
  RIDGE_RETURN_IF_ERROR(Gather());
  if (packs_) team([this](int piece, int pieces) { Unpack(piece, pieces); });
  return Status();
}

Status TreeSum::Run(const Add& add) {
  RIDGE_CHECK(!packs_, "what is packed is packed on the host");
  RIDGE_RETURN_IF_ERROR(Send(Team()));
  for (const Addition& addition : additions_)
    RIDGE_RETURN_IF_ERROR(add(addition.left.at, addition.right.at, addition.to.at));
  return Gather();
}

Status TreeSum::Send(const Team& team) {
  size_t rounds = 0;
  for (const std::vector<SliceRange>& of_rank : parts_) rounds = std::max(rounds, of_rank.size());
  for (size_t k = 0; k < rounds; ++k) {
    if (packs_ && k < place_.parts.size())
      team([this, k](int piece, int pieces) { Pack(k, piece, pieces); });
    RIDGE_RETURN_IF_ERROR(SendRound(k));
  }
  return Status();
}

Status TreeSum::SendRound(size_t k) {
  ClearSpans();
  for (int other = 0; other < share_.ranks; ++other) {
    if (other == share_.rank) continue;
    const ByteRange theirs = ChunkOf(other, share_.ranks, block_.bytes);
    if (k < place_.parts.size()) sends_[Index(other)] = Sent(Outgoing(place_.parts[k]), theirs);
    if (k < parts_[Index(other)].size())
      receives_[Index(other)] = Sent(addends_[Index(other)][k].at, chunk_);
  }
  return communicator_.Exchange(sends_, receives_);
}

// What the others add up of part k.
void TreeSum::Pack(size_t k, int piece, int pieces) const {
  const auto pack = [&](int64_t begin, int64_t end) {
    PackSums(wire_, begin, end, place_.parts[k], packed_);
  };
  ForEachTile({0, chunk_.begin}, piece, pieces, pack);
  ForEachTile({chunk_.end, block_.bytes}, piece, pieces, pack);
}

void TreeSum::Combine(int piece, int pieces) const {
  ForEachTile(chunk_, piece, pieces, [&](int64_t begin, int64_t end) {
    for (const Addition& addition : additions_) AddTile(addition, begin, end);
    if (packs_) PackSums(wire_, begin, end, place_.parts.front(), packed_);
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

Status TreeSum::Gather() {
  ClearSpans();
  std::byte* sum = Outgoing(place_.parts.front());
  for (int other = 0; other < share_.ranks; ++other) {
    if (other == share_.rank) continue;
    sends_[Index(other)] = Sent(sum, chunk_);
    receives_[Index(other)] = Sent(sum, ChunkOf(other, share_.ranks, block_.bytes));
  }
  return communicator_.Exchange(sends_, receives_);
}

// The others' chunks of the sum.
void TreeSum::Unpack(int piece, int pieces) const {
  const auto unpack = [&](int64_t begin, int64_t end) {
    UnpackSums(wire_, begin, end, packed_, place_.parts.front());
  };
  ForEachTile({0, chunk_.begin}, piece, pieces, unpack);
  ForEachTile({chunk_.end, block_.bytes}, piece, pieces, unpack);
}

}  // namespace ridge
