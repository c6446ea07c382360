// FindGradientReach: which parameters get a gradient from a loss, and what blocks it for the
// others.
#pragma once
#include <string>
#include <vector>

#include "ridge/graph/graph.h"

namespace ridge {

// Whether the node propagates gradients of its outputs to input i: not if the input is absent, is
// in OpDef::no_gradient_inputs (indices, labels) or is no float, or if no output is a float.
bool GradientFlows(const Graph& graph, const Node& node, size_t i);

struct GradientReach {
  std::vector<ValueId> unused;     // the loss does not depend on them
  std::vector<ValueId> blocked;    // the loss depends on them only through non-differentiable nodes
  std::vector<NodeId> blocked_by;  // those nodes, in the graph's order
};

// Finds which of `wanted` get no gradient from `loss`.  Visits each value once: linear time.
GradientReach FindGradientReach(const Graph& graph, ValueId loss,
                                const std::vector<ValueId>& wanted);

// One sentence per kind; empty when every wanted value has a gradient.
std::vector<std::string> DescribeGradientReach(const Graph& graph, const GradientReach& reach);

// "a, b, c and 4 more": names of values, the first `most` of them.
std::string NameValues(const Graph& graph, const std::vector<ValueId>& values, size_t most = 4);

}  // namespace ridge
