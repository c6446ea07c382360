// Computing values again instead of keeping them: a rewrite that the planner asks for.
//
// Not one of AllPasses(): which values, and for which readers, is a question of bytes over time,
// which the graph does not know (plan/memory/recompute.h answers it).
#pragma once
#include <cstdint>
#include <vector>

#include "ridge/graph/graph.h"

namespace ridge {

struct RecomputeSet {
  std::vector<bool> values;        // by ValueId: has a second form for late readers
  std::vector<bool> late_readers;  // by NodeId
  int64_t chosen = 0;              // of the values: those that need not be kept

  bool empty() const;
};

// Whether a value may be in RecomputeSet::values: the first result of an operator that takes little
// arithmetic for its bytes and gives the same bits from the same inputs each time.
bool IsCheapAgain(const Graph& graph, ValueId id);

// The values that `id` is computed from when it is computed again: of a batch norm its saved
// statistics too.
std::vector<ValueId> InputsAgain(const Graph& graph, ValueId id);

// Each late reader of such a value reads a copy, made right before the first of them from the same
// inputs; what is made of values that have copies reads the copies.  Bits do not change.
// REQUIRES: IsCheapAgain() of all of them.
Result<Graph> RecomputeValues(const Graph& graph, const RecomputeSet& set);

}  // namespace ridge
