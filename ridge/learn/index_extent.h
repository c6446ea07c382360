// IndexExtents: how many values the integers of a graph may take.
#pragma once
#include <cstdint>
#include <vector>

#include "ridge/graph/graph.h"

namespace ridge {

// By ValueId: the smallest extent that the value's elements index, such as the rows of an
// embedding or the classes of a loss; 0 for none.  Follows operators that move or copy elements.
std::vector<int64_t> IndexExtents(const Graph& graph);

}  // namespace ridge
