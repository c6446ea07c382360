// The kernels of a step that adds up its slices in a tree (plan/tree_sums.h).  An all_gather reads
// its inputs of all slices of the rank, slice by slice.
#pragma once
#include <map>
#include <memory>
#include <utility>

#include "ridge/backend/backend.h"
#include "ridge/dist/communicator.h"
#include "ridge/dist/exchange_thread.h"
#include "ridge/dist/sum_block.h"
#include "ridge/plan/tree_sums.h"

namespace ridge {

// A step's sums: where they are, and what runs their nodes.  All three outlive it.
struct TreeMemory {
  const Program& program;
  const StepPlan& step;  // with a tree
  std::byte* arena = nullptr;
  bool host_reaches = true;  // the arena

  SumBlock block() const;
  // The bytes of the block that these sums have.
  std::vector<ByteRange> RangesOf(const std::vector<int>& sums) const;
  // Of the block at a position (SliceFold).
  std::byte* BlockAt(int64_t position) const;
};

class SumJob;

// What the collectives of a program run on.
struct TreeExchange {
  // `most_jobs`: buckets of a step, and one.
  TreeExchange(Communicator& communicator, size_t most_jobs)
      : communicator(communicator), thread(most_jobs) {}

  Communicator& communicator;
  // Of a start and its wait, by the first sum of the bucket.
  std::map<std::pair<const StepPlan*, int>, std::shared_ptr<SumJob>> jobs;
  ExchangeThread thread;  // last: it runs the jobs
};

// Whether exchanges of the program run beside its nodes.
bool OverlapsExchange(const Program& program);

// The blocks that a tree_add node adds up behind a slice, from the last one on: each is added to
// the next.  One block, or none, adds nothing.
std::vector<void*> BlocksToAdd(const TreeMemory& memory, int64_t slice);

// How the collectives of a program run; all of it outlives them.
struct TreeRanks {
  Communicator* communicator = nullptr;  // null: a plan whose collectives fail with kUnavailable
  TreeExchange* exchange = nullptr;      // null: in line
  double* spent_s = nullptr;             // to which collectives add the seconds of the step
};

// Fails with kUnsupported: sums of other types than CheckSums() allows; and as BlockAdder does.
// REQUIRES: IsTreeNode(node); an exchange where the program overlaps and there is a communicator.
Result<std::unique_ptr<Kernel>> MakeTreeKernel(const TreeMemory& memory, const PlannedNode& node,
                                               Backend& backend, const TreeRanks& ranks);

}  // namespace ridge
