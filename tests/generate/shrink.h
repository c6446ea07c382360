// Shrink: a smaller graph that is wrong in the same way.
#pragma once
#include <functional>

#include "ridge/graph/graph.h"

namespace ridge {

// Leaves nodes out, puts parameters in the place of values and 1 in the place of extents, as long
// as `fails` holds for what is left.  REQUIRES: fails(graph).
Graph Shrink(Graph graph, const std::function<bool(const Graph&)>& fails);

}  // namespace ridge
