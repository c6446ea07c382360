// SplitBiasGradients: a convolution's gradients of weights and bias as two nodes, for kernels that
// give one of them.
//
//   dw, dbias = conv_grad_weight(x, dy, bias=1)
//     -> dw = conv_grad_weight(x, dy), dbias = reduce_sum(dy, axes=[0,2,3])
#pragma once
#include "ridge/graph/graph.h"
#include "ridge/lower/rewrite_rules.h"

namespace ridge {

// Nodes of which RewriteRules::GivesBiasGradient() is true stay as they are.
Result<Graph> SplitBiasGradients(Graph graph, const RewriteRules& rules);

}  // namespace ridge
