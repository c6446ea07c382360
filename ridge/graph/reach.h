// Reach: which values of a graph are computed from which.  Each function visits every node once.
#pragma once
#include <functional>
#include <vector>

#include "ridge/graph/graph.h"

namespace ridge {

using ValueSet = std::vector<bool>;  // by ValueId

// `roots` and the values that they are computed from, by way of node inputs for which `through`
// holds; without it, of all.
ValueSet Ancestors(const Graph& graph, const std::vector<ValueId>& roots,
                   const std::function<bool(const Node&, size_t input)>& through = nullptr);

// `roots` and the values that are computed from any of them.
ValueSet Descendants(const Graph& graph, const std::vector<ValueId>& roots);

// The nodes that have an output in the set, by NodeId.
std::vector<bool> ProducersOf(const Graph& graph, const ValueSet& values);

// The values of all outputs, and of outputs and updates.
std::vector<ValueId> OutputValues(const Graph& graph);
std::vector<ValueId> ResultValues(const Graph& graph);

}  // namespace ridge
