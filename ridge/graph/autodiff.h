// Reverse-mode differentiation: Graph, loss -> Graph with gradients.
#pragma once
#include <vector>

#include "ridge/graph/builder.h"

namespace ridge {

// Appends nodes that compute d(loss)/d(w) for each w, and returns those values in the same order;
// a w that does not affect the loss gets zeros.  REQUIRES: loss is a float scalar.
// Gradients of several paths are added in the order of the walk, which is fixed.
// Fails with kUnsupported and the list of nodes without a gradient on the path, by name.
Result<std::vector<Value>> AppendGradients(GraphBuilder& builder, Value loss,
                                           const std::vector<Value>& with_respect_to);

}  // namespace ridge
