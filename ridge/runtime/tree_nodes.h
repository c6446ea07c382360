// The kernels of a step that adds up its slices in a tree (plan/tree_sums.h).
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
  // Of the block at a position (SliceFold).
  std::byte* BlockAt(int64_t position) const;
};

// The blocks that a tree_add node adds up behind a slice, from the last one on: each is added to
// the next.  One block, or none, adds nothing.
std::vector<void*> BlocksToAdd(const TreeMemory& memory, int64_t slice);

// The ranks that run a step together; both outlive it.
struct TreeRanks {
  Communicator* communicator = nullptr;  // nullptr: a plan whose collectives fail with kUnavailable
  double* spent_s = nullptr;             // to which collectives add their seconds
};

// Fails with kUnsupported: sums of other types than CheckSums() allows.
// REQUIRES: IsTreeNode(node).
Result<std::unique_ptr<Kernel>> MakeTreeKernel(const TreeMemory& memory, const PlannedNode& node,
                                               Backend& backend, const TreeRanks& ranks);

}  // namespace ridge
