// Analysis of a step that runs its batch in slices (NamedGraph::slices): which nodes run once, and
// what the first slice does otherwise.
#pragma once
#include <vector>

#include "ridge/plan/planner.h"

namespace ridge {

class SlicePhases {
 public:
  // Whether the node depends on a completed sum, so that it runs behind the loop over the slices.
  bool RunsLast(const Node& node) const {
    return !node.outputs.empty() && last_[static_cast<size_t>(node.outputs[0])];
  }
  // Whether the value is a sum over the slices or depends on one.
  bool KnownLast(ValueId id) const {
    return IsSum(id) || last_[static_cast<size_t>(id)] || total_[static_cast<size_t>(id)];
  }
  bool IsSum(ValueId variable) const { return sum_[static_cast<size_t>(variable)]; }

 private:
  friend SlicePhases FindSlicePhases(const NamedGraph& named);
  std::vector<bool> sum_;    // by ValueId: a state that sums over the slices
  std::vector<bool> total_;  // the new contents of such a state
  std::vector<bool> last_;   // the result of a node that runs behind the loop
};

// Throws Bug when an addend of a sum depends on a sum.
SlicePhases FindSlicePhases(const NamedGraph& named);

// Peels the first iteration of the loop: it leaves out `sum = add(sum, x)`, and the producer of x
// writes into the sum, which so needs no zeros.  Not where another result overwrites x later in the
// slice.  In a step that adds in a tree every iteration is peeled so.
// REQUIRES: ShareInPlace() has run, if it runs at all.
void PeelFirstSlice(StepPlan& step);

}  // namespace ridge
