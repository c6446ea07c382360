// Patterns: an operator recognized in the primitive nodes that a file writes for it
// (OpDef::pattern).
#pragma once
#include <optional>
#include <vector>

#include "ridge/graph/graph.h"

namespace ridge {

// The call that is equivalent to `root`.  `inner` are the results between the call's inputs and the
// root: if one of them has other readers the nodes remain, since nothing would be saved.
struct PatternMatch {
  const OpDef* op = nullptr;  // nullptr: no match
  std::vector<ValueId> inputs = {};
  AttrMap attrs = {};
  std::vector<ValueId> inner = {};
};

// The value of all elements of a constant of at most 1024 equal elements; also through an expand.
std::optional<double> SplatOf(const Graph& graph, ValueId id);

}  // namespace ridge
