// Second half of the fuse pass: which pointwise nodes become one `fused` node.
#pragma once
#include <vector>

#include "ridge/graph/graph.h"

namespace ridge {

// Groups of two and more pointwise nodes, each connected by reads and all of one output shape,
// members in order.  Replacing every group by one node leaves no cycle, and no group exceeds what
// an Expression holds.  Deterministic.
std::vector<std::vector<NodeId>> FindFusionGroups(const Graph& graph);

}  // namespace ridge
