// IndexExtent: how many values an integer input can take.
#pragma once
#include "ridge/graph/graph.h"

namespace ridge {

// The extent that `input` picks from: an embedding's rows, a loss's classes; the smallest where it
// picks from several, 0 where it picks from none.  Looked for behind operators that move or copy
// elements.
int64_t IndexExtent(const Graph& graph, ValueId input);

}  // namespace ridge
