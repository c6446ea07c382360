// Third part of the algebra pass: joins the gradients of all parts of one value.
#pragma once
#include "ridge/graph/graph.h"

namespace ridge {

// slice_grad(a) + slice_grad(b) + .. + rest -> concat(a, b, ..) + rest, where the parts tile the
// whole.  # exact, but for -0 + 0
Result<Graph> ConcatSliceGradients(Graph graph);

}  // namespace ridge
