// TreeSum: the sum of a block over the ranks of a job, added in the order of core/slice_tree.h.
//
//   Send     every rank sends chunk j of each of its parts to rank j
//   Combine  rank j adds up chunk j by the tree, never in the order in which parts came
//   Gather   every rank sends its chunk of the sum to all others
//
// Afterwards the sum lies in the first part's place, on every rank; the other parts mean nothing.
// The constructor allocates; the calls allocate nothing.  Not thread-safe, but for Combine().
#pragma once
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
    std::byte* scratch = nullptr;   // ReceivedBytes(share, block.bytes), aligned as the parts
  };
  // REQUIRES: the communicator's rank and size are the share's; CheckSums(block).
  TreeSum(Communicator& communicator, const SliceShare& share, SumBlock block, Place place);

  Status Send();
  // Piece `piece` of `pieces` of the work, which several threads may share.
  void Combine(int piece, int pieces) const;
  Status Gather();

 private:
  // to = left + right, of the own chunk; all three point to where the block would begin.
  struct Addition {
    const std::byte* left;
    const std::byte* right;
    std::byte* to;
  };

  void PlaceAddends();
  void ListAdditions();
  void ClearSpans();

  Communicator& communicator_;
  const SliceShare share_;
  const SumBlock block_;
  const Place place_;
  const ByteRange chunk_;                         // that this rank adds up
  std::vector<std::vector<SliceRange>> parts_;    // by rank
  std::vector<std::vector<std::byte*>> addends_;  // by rank and part: where the block would begin
  std::vector<Addition> additions_;
  std::vector<std::span<const std::byte>> sends_;
  std::vector<std::span<std::byte>> receives_;
};

}  // namespace ridge
