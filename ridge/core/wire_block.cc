#include "ridge/core/wire_block.h"

#include <algorithm>
#include <utility>

namespace ridge {
namespace {

int64_t PartsIn(const SliceShare& share, int rank) {
  return static_cast<int64_t>(PartsOf(share.OwnedBy(rank), share.slices).size());
}

}  // namespace

void WireBlock::Add(int64_t more, bool as_bf16) {
  const int64_t begin = std::exchange(bytes, bytes + more);
  if (!as_bf16) return;
  if (!narrow.empty() && narrow.back().end == begin) {
    narrow.back().end = bytes;
  } else {
    narrow.push_back({begin, bytes});
  }
}

int64_t WireBlock::WireOffset(int64_t at) const {
  int64_t saved = 0;
  for (const ByteRange& range : narrow) {
    if (range.begin >= at) break;
    saved += (std::min(range.end, at) - range.begin) / 2;
  }
  return at - saved;
}

int64_t ReceivedBytes(const SliceShare& share, const WireBlock& block) {
  int64_t parts = 0;
  for (int rank = 0; rank < share.ranks; ++rank)
    parts += rank == share.rank ? 0 : PartsIn(share, rank);
  return parts * block.WireBytes(ChunkOf(share.rank, share.ranks, block.bytes));
}

int64_t SentBytes(const SliceShare& share, const WireBlock& block) {
  const int64_t own = block.WireBytes(ChunkOf(share.rank, share.ranks, block.bytes));
  return PartsIn(share, share.rank) * (block.WireOffset(block.bytes) - own) +
         (share.ranks - 1) * own;
}

int64_t SumScratchBytes(const SliceShare& share, const WireBlock& block) {
  const int64_t packed = block.goes_as_it_lies() ? 0 : block.WireOffset(block.bytes);
  return ReceivedBytes(share, block) + packed;
}

}  // namespace ridge
