// ReadLogitsOnce: what a step asks of each row of logits comes of one reading, and the gradient
// does not search the rows again.
//
//   losses = softmax_cross_entropy(logits, labels), best = argmax(logits, axis=-1),
//   dlogits = softmax_cross_entropy_grad(logits, labels, dlosses)
//     -> losses, log_sums, best = softmax_cross_entropy(logits, labels, extra_outputs=2),
//        dlogits = softmax_cross_entropy_grad(logits, labels, dlosses, log_sums)
#pragma once
#include "ridge/graph/graph.h"
#include "ridge/lower/rewrite_rules.h"

namespace ridge {

// Where `rules` fuse it.  # losses and best bitwise, dlogits but for the rounding of log_sums
Result<Graph> ReadLogitsOnce(Graph graph, const RewriteRules& rules);

}  // namespace ridge
