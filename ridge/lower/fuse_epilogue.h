// First half of the fuse pass: pointwise steps become the epilogue of a matmul or conv.
#pragma once
#include "ridge/graph/graph.h"
#include "ridge/lower/rewrite_rules.h"

namespace ridge {

// relu(matmul(a, b)) -> matmul(a, b, epilogue="relu")
// add(conv(x, w), r) -> conv(x, w, _, r, epilogue="add"), where r has the type of the result
// ... if the values between have no other readers, as far as `rules` take the steps.
Result<Graph> FuseEpilogues(Graph graph, const RewriteRules& rules);

}  // namespace ridge
