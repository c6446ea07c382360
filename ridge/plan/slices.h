// What is known of a step that runs its batch in slices (NamedGraph::slices): what runs once, and
// where the first slice writes.
#pragma once
#include <vector>

#include "ridge/plan/planner.h"

namespace ridge {

class SlicePhases {
 public:
  // The node reads what only the last slice completes, so it runs with the last slice alone.
  bool RunsLast(const Node& node) const {
    return !node.outputs.empty() && last_[static_cast<size_t>(node.outputs[0])];
  }
  // The value is a sum over the slices, or follows from one.
  bool KnownLast(ValueId id) const {
    return IsSum(id) || last_[static_cast<size_t>(id)] || total_[static_cast<size_t>(id)];
  }
  bool IsSum(ValueId variable) const { return sum_[static_cast<size_t>(variable)]; }

 private:
  friend SlicePhases FindSlicePhases(const NamedGraph& named);
  std::vector<bool> sum_;    // by ValueId: a state that sums over the slices
  std::vector<bool> total_;  // its new contents
  std::vector<bool> last_;   // made by a node that runs last
};

// A bug when what is added to a sum follows from one.
SlicePhases FindSlicePhases(const NamedGraph& named);

// `sum = add(sum, x)` need not read the sum in the first slice, nor must that be 0 then: whatever
// makes x writes into it (PlannedValue::first_slice_in), unless something else is written over x in
// the same slice.
// REQUIRES: ShareInPlace has run, where results may lie over operands at all.
void WriteFirstSlice(StepPlan& step);

}  // namespace ridge
