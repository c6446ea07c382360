// TreeSum: the sum of a block over the ranks of a job, added in the order of core/slice_tree.h.
//
//   Send     every rank sends chunk j of each of its parts to rank j
//   Combine  rank j adds up chunk j by the tree, never in the order in which parts came
//   Gather   every rank sends its chunk of the sum to all others
//
// It does so for one segment of the block after another (WireBlock::Segments).
// Afterwards the sum lies in the first part's place, on every rank; the other parts mean nothing.
// Narrow values (SumBlock) are packed before they are sent, and unpacked where they are added.
// The constructor allocates; Run() allocates nothing.  Not thread-safe.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "ridge/core/slice_tree.h"
#include "ridge/dist/communicator.h"
#include "ridge/dist/sum_block.h"

namespace ridge {

class TreeSum {
 public:
  // Where the sums of a job's slices lie; all of it outlives the TreeSum.
  struct Place {
    std::vector<std::byte*> parts;  // of this rank, PartsOf(share.owned()) blocks
    std::byte* scratch = nullptr;   // SumScratchBytes(share, block.wire()), aligned as the parts
  };
  // Calls what it is given for each piece of the work, on as many threads as it likes.
  using Work = std::function<void(int piece, int pieces)>;
  using Team = std::function<void(const Work&)>;
  // REQUIRES: the communicator's rank and size are the share's; CheckSums(block).
  TreeSum(Communicator& communicator, const SliceShare& share, SumBlock block, Place place);

  Status Run(const Team& team);
  // The same in memory that the host does not reach: `add` adds the bytes of chunk() of two blocks,
  // whose starts it is given, into a third, which may be one of them.  REQUIRES: nothing is narrow,
  // and the block is one segment.
  using Add = std::function<Status(const std::byte* left, const std::byte* right, std::byte* to)>;
  Status Run(const Add& add);
  // Of the block, that this rank adds up.  REQUIRES: it is one segment.
  const ByteRange& chunk() const { return segments_.front().own; }

 private:
  // A part, or a sum of parts: where the block would begin, as it lies or as it is sent.
  struct Addend {
    std::byte* at = nullptr;
    bool packed = false;
  };
  // to = left + right, of the own chunk.
  struct Addition {
    Addend left, right, to;
  };

  // What is summed at a time.
  struct Segment {
    ByteRange all, own;                        // own: the chunk that this rank adds up
    std::vector<std::vector<Addend>> addends;  // by rank and part
    std::vector<Addition> additions;
    // Where the block would begin as it is sent, if it is not sent as it lies.
    std::byte* packed = nullptr;
  };

  Segment SegmentOf(const ByteRange& all) const;
  void PlaceAddends(Segment& segment) const;
  void ListAdditions(Segment& segment) const;
  ByteRange ChunkOfRank(const Segment& segment, int rank) const {
    return ChunkIn(segment.all, rank, share_.ranks);
  }
  void ClearSpans();
  Status RunSegment(const Segment& segment, const Team& team);
  Status Send(const Segment& segment, const Team& team);
  Status SendRound(const Segment& segment, size_t k);
  void Pack(const Segment& segment, size_t k, int piece, int pieces) const;
  void Combine(const Segment& segment, int piece, int pieces) const;
  void AddTile(const Addition& addition, int64_t begin, int64_t end) const;
  Status Gather(const Segment& segment);
  void Unpack(const Segment& segment, int piece, int pieces) const;
  // What is sent of the own block, or received into it: the block itself, or packed.
  std::byte* Outgoing(const Segment& segment, std::byte* part) const {
    return packs_ ? segment.packed : part;
  }
  std::span<std::byte> Sent(std::byte* start, const ByteRange& chunk) const {
    return {start + wire_.WireOffset(chunk.begin), static_cast<size_t>(wire_.WireBytes(chunk))};
  }

  Communicator& communicator_;
  const SliceShare share_;
  const SumBlock block_;
  const WireBlock wire_;
  const bool packs_;
  const Place place_;
  std::vector<std::vector<SliceRange>> parts_;  // by rank
  std::vector<Segment> segments_;
  std::vector<std::span<const std::byte>> sends_;
  std::vector<std::span<std::byte>> receives_;
};

}  // namespace ridge
