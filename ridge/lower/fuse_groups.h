// Second half of the fuse pass: groups pointwise nodes into `fused` nodes.
#pragma once
#include <vector>

#include "ridge/graph/graph.h"
#include "ridge/lower/rewrite_rules.h"

namespace ridge {

// Groups of two or more pointwise nodes, connected by reads and of one output shape, members in
// order.  Replacing every group by one node creates no cycle, and no group exceeds the limits of an
// Expression.  Nodes with a type that `rules` do not group stay alone.  Deterministic.
std::vector<std::vector<NodeId>> FindFusionGroups(const Graph& graph, const RewriteRules& rules);

}  // namespace ridge
