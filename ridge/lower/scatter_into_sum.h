// ScatterIntoSum: updates of few rows are added to the sum that they belong to, such as the
// gradient of a table that is looked up and multiplied with.
//
//   y = add(x, scatter_add(indices, updates, axis=0))
//     -> y = scatter(x, indices, updates, reduction="add")
#pragma once
#include "ridge/graph/graph.h"
#include "ridge/lower/rewrite_rules.h"

namespace ridge {

// Where nothing else reads the scattered updates, and `rules` fuse it.  # but for the rounding of
// sums of several updates
Result<Graph> ScatterIntoSum(Graph graph, const RewriteRules& rules);

}  // namespace ridge
