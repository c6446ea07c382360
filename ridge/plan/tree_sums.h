// The nodes of a step that adds up its slices in a tree (StepPlan::tree), and where its sums lie.
//
//   tree_add    in the loop, behind a slice: adds the sums that make a node of the tree; it reads
//               and writes the blocks of TreePlan.  With slices in step one for each node that
//               makes sums
//   tree_sum    behind the loop, with several ranks: exchanges the ranks' parts and adds them
//   tree_sum_start, tree_sum_wait
//               instead of it, for a bucket of sums: the exchange runs beside the nodes between
//               them.  A start runs in the last slice, behind the last node that touches the
//               bucket's sums; a wait before the first node that reads one of the batch
//   all_gather  in the loop of slices in step: a value of all slices, of all ranks
//   all_gather_start, all_gather_wait
//               instead of it, with several ranks, where nodes stand before the first one that
//               reads the value: a rank runs them while others are late
//
// Every slice's addends are written into the block at the slice's position (SliceFold), and the sum
// over the batch lies at position 0.  A collective is a node, so all ranks come to them in the
// order of the plan.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ridge/core/wire_block.h"
#include "ridge/plan/program.h"

namespace ridge {

inline constexpr char kTreeAddKernel[] = "tree_add";
inline constexpr char kTreeSumKernel[] = "tree_sum";
inline constexpr char kTreeSumStartKernel[] = "tree_sum_start";
inline constexpr char kTreeSumWaitKernel[] = "tree_sum_wait";
inline constexpr char kAllGatherKernel[] = "all_gather";
inline constexpr char kAllGatherStartKernel[] = "all_gather_start";
inline constexpr char kAllGatherWaitKernel[] = "all_gather_wait";

// Whether the node is one of these.
bool IsTreeNode(const PlannedNode& node);
// Whether it is one of the three that gather.
bool IsGather(const PlannedNode& node);
// Whether it exchanges with other ranks.
bool IsCollective(const StepPlan& step, const PlannedNode& node);

// The node of a gather_slices.  REQUIRES: step.tree.
PlannedNode AllGatherNode(const StepPlan& step, OpCall call);

// Adds the nodes to the steps, and the further blocks to the persistent values.  With `overlap` the
// sums of several ranks leave in buckets, as soon as they are there.
// REQUIRES: PeelFirstSlice() has run.
void FormTreeSums(Program& program, bool overlap);

// The blocks of sums in the order in which PlacePersistent() lays them side by side: persistent
// indices.  Steps with equal sums share a block.
std::vector<std::vector<int>> SumBlocks(const Program& program);

// Offset in the arena of a sum at a position (SliceFold).
int64_t SumOffset(const Program& program, const StepPlan& step, int sum, int64_t position);

// The part of each batch that the program computes; none: all of it, in running sums.
std::optional<SliceShare> ShareOf(const Program& program);

// The exchanges of a program in their order, as text: it must be the same on all ranks.
std::string ExchangeOrder(const Program& program);

// The f32 sums that are gradients, and no outputs: losses and counts stay exact.
std::vector<int> NarrowSums(const Program& program, const StepPlan& step);

// These sums of a step as ranks send them.  REQUIRES: they lie side by side, in this order.
WireBlock WireBlockOf(const Program& program, const TreePlan& tree, const std::vector<int>& sums);

// Nodes that ranks run together: those of an operator in one step.
struct Collective {
  std::string step, op;
  int64_t count = 0;
  int64_t bytes = 0;          // that are summed, or gathered
  int64_t sent_bytes = 0;     // by this rank, in one run of the step
  int64_t scratch_bytes = 0;  // of one node, for what it receives
};
std::vector<Collective> CollectivesOf(const Program& program);

}  // namespace ridge
