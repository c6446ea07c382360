// The kernels of a step that adds up its slices in a tree (plan/tree_sums.h).  An all_gather reads
// its inputs of all slices of the rank, slice by slice.
#pragma once
#include <memory>

#include "ridge/backend/backend.h"
#include "ridge/dist/communicator.h"
#include "ridge/dist/sum_block.h"
#include "ridge/plan/tree_sums.h"

namespace ridge {

// A step's sums: where they are, and what runs their nodes.  All three outlive it.
struct TreeMemory {
  const Program& program;
  const StepPlan& step;  // with a tree
  std::byte* arena = nullptr;

  SumBlock block() const;
  // The bytes of the block that these sums have.
  std::vector<ByteRange> RangesOf(const std::vector<int>& sums) const;
  // Of the block at a position (SliceFold).
  std::byte* BlockAt(int64_t position) const;
};

// The blocks that a tree_add node adds up behind a slice, from the last one on: each is added to
// the next.  One block, or none, adds nothing.
std::vector<void*> BlocksToAdd(const TreeMemory& memory, int64_t slice);

// `communicator`: of the ranks that run the step together; nullptr makes a plan whose collectives
// fail with kUnavailable.  Fails with kUnsupported: sums of other types than CheckSums() allows.
// REQUIRES: IsTreeNode(node).
Result<std::unique_ptr<Kernel>> MakeTreeKernel(const TreeMemory& memory, const PlannedNode& node,
                                               Backend& backend, Communicator* communicator);

}  // namespace ridge
