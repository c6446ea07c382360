// Which parameters a loss can teach, and what keeps the others from it.
#pragma once
#include <string>
#include <vector>

#include "ridge/graph/graph.h"

namespace ridge {

// Whether a gradient of the node's outputs leads to one of input i: false for absent inputs, those
// that the operator names as without (indices, labels), and where input or all outputs are no
// floats.
bool GradientFlows(const Graph& graph, const Node& node, size_t i);

struct GradientReach {
  std::vector<ValueId> unused;     // the loss does not depend on them
  std::vector<ValueId> blocked;    // it does, but only through nodes without a derivative:
  std::vector<NodeId> blocked_by;  // in the graph's order
};

// Sorts out which of `wanted` get no gradient from `loss`.  Values between are followed once, so
// the time is linear in the graph.
GradientReach FindGradientReach(const Graph& graph, ValueId loss,
                                const std::vector<ValueId>& wanted);

// One sentence for each kind; empty when every wanted value has a gradient.
std::vector<std::string> DescribeGradientReach(const Graph& graph, const GradientReach& reach);

// "a, b, c and 4 more": names of values, the first `most` of them.
std::string NameValues(const Graph& graph, const std::vector<ValueId>& values, size_t most = 4);

}  // namespace ridge
