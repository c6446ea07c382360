// WireBlock: a block of sums as ranks send it to each other.  Ranges of f32 may go as bf16, which
// halves their bytes; everything else goes as it lies.
#pragma once
#include <cstdint>
#include <vector>

#include "ridge/core/slice_tree.h"

namespace ridge {

// Beside a step a sum lets urgent exchanges pass: a rank sends it in pieces of so many bytes, and
// at least so many at a time.  What is urgent comes behind these.
inline constexpr int64_t kPieceBytes = int64_t{128} << 10;
inline constexpr int64_t kPiecesAhead = 2;

// In line a sum goes through its block a segment of so many bytes after another: what a rank
// receives is added while it lies in the last cache, and memory is needed for one segment only.
inline constexpr int64_t kSegmentBytes = int64_t{4} << 20;

struct WireBlock {
  int64_t bytes = 0;                   // as it lies
  std::vector<ByteRange> narrow = {};  // go as bf16: whole lines (kChunkLine), by offset
  int64_t segment_bytes = 0;           // whole lines; 0: the block is one segment

  // The next bytes of the block.  REQUIRES: whole lines behind whole lines.
  void Add(int64_t more, bool as_bf16);

  bool goes_as_it_lies() const { return narrow.empty(); }
  // Bytes that are sent for what lies before `at`.  REQUIRES: a whole line, or the block's end.
  int64_t WireOffset(int64_t at) const;
  int64_t WireBytes(const ByteRange& range) const {
    return WireOffset(range.end) - WireOffset(range.begin);
  }
  // The segments of the block, in order; one at least.
  std::vector<ByteRange> Segments() const;
  bool operator==(const WireBlock&) const = default;
};

// Of a segment, what a rank adds up.
ByteRange ChunkIn(const ByteRange& segment, int rank, int ranks);

// Bytes of the other ranks' parts of the own chunks.
int64_t ReceivedBytes(const SliceShare& share, const WireBlock& block);
// Bytes that the rank sends in one sum over a block: chunks of its parts, then its chunk of the
// sum.
int64_t SentBytes(const SliceShare& share, const WireBlock& block);
// Bytes of memory that a sum needs beside the parts: what is received of a segment, and with narrow
// ranges the segment as it is sent.
int64_t SumScratchBytes(const SliceShare& share, const WireBlock& block);

}  // namespace ridge
