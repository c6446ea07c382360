// Rematerialization: a rewrite, on request of the planner, that recomputes values instead of
// keeping them.
//
// Not one of AllPasses(): the choice of values and readers depends on live bytes over time, which
// the graph does not know (plan/search/recompute.h makes it).
#pragma once
#include <cstdint>
#include <vector>

#include "ridge/graph/graph.h"

namespace ridge {

struct RecomputeSet {
  std::vector<bool> values;        // by ValueId: recomputed for late readers
  std::vector<bool> late_readers;  // by NodeId
  int64_t chosen = 0;              // number of values that need not be kept

  bool empty() const;
};

// Whether a value may be in RecomputeSet::values: the first result of a deterministic operator.
bool MayRematerialize(const Graph& graph, ValueId id);
// Whether it takes little arithmetic for its bytes, too: no product and no convolution.
bool IsCheapToRematerialize(const Graph& graph, ValueId id);

// The inputs of the node that recomputes `id`: for a batch norm its saved statistics too.
std::vector<ValueId> RematInputs(const Graph& graph, ValueId id);

// Late readers of such a value read a copy, which is recomputed from the same inputs right before
// the first of them; a copy reads the copies of its inputs.  Bits do not change.
// REQUIRES: MayRematerialize() for all values of the set.
Result<Graph> RecomputeValues(const Graph& graph, const RecomputeSet& set);

}  // namespace ridge
