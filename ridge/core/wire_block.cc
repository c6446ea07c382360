#include "ridge/core/wire_block.h"

#include <algorithm>
#include <utility>

namespace ridge {
namespace {

int64_t PartsIn(const SliceShare& share, int rank) {
  return static_cast<int64_t>(PartsOf(share.OwnedBy(rank), share.slices).size());
}

int64_t ReceivedOf(const ByteRange& segment, const SliceShare& share, const WireBlock& block) {
  int64_t parts = 0;
  for (int rank = 0; rank < share.ranks; ++rank)
    parts += rank == share.rank ? 0 : PartsIn(share, rank);
  return parts * block.WireBytes(ChunkIn(segment, share.rank, share.ranks));
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

std::vector<ByteRange> WireBlock::Segments() const {
  std::vector<ByteRange> segments;
  const int64_t step = segment_bytes > 0 ? segment_bytes : bytes;
  for (int64_t at = 0; at < bytes; at += step) segments.push_back({at, std::min(at + step, bytes)});
  return segments.empty() ? std::vector<ByteRange>(1) : segments;
}

ByteRange ChunkIn(const ByteRange& segment, int rank, int ranks) {
  const ByteRange chunk = ChunkOf(rank, ranks, segment.bytes());
  return {segment.begin + chunk.begin, segment.begin + chunk.end};
}

int64_t ReceivedBytes(const SliceShare& share, const WireBlock& block) {
  int64_t received = 0;
  for (const ByteRange& segment : block.Segments()) received += ReceivedOf(segment, share, block);
  return received;
}

int64_t SentBytes(const SliceShare& share, const WireBlock& block) {
  int64_t own = 0;
  for (const ByteRange& segment : block.Segments())
    own += block.WireBytes(ChunkIn(segment, share.rank, share.ranks));
  return PartsIn(share, share.rank) * (block.WireOffset(block.bytes) - own) +
         (share.ranks - 1) * own;
}

int64_t SumScratchBytes(const SliceShare& share, const WireBlock& block) {
  int64_t most = 0;
  for (const ByteRange& segment : block.Segments()) {
    const int64_t packed = block.goes_as_it_lies() ? 0 : block.WireBytes(segment);
    most = std::max(most, ReceivedOf(segment, share, block) + packed);
  }
  return most;
}

}  // namespace ridge
