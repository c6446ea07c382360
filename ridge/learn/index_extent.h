// IndexExtent: how many values an integer input can take.
#pragma once
#include "ridge/graph/graph.h"

namespace ridge {

// The extent that `input` indexes: an embedding's rows, a loss's classes; the smallest of several,
// 0 for none.  The search follows operators that move or copy elements.
int64_t IndexExtent(const Graph& graph, ValueId input);

}  // namespace ridge
