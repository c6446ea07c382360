// A step of the fuse pass: batch norms absorb a following relu and sum, and their gradients relu's
// mask.
#pragma once
#include "ridge/graph/graph.h"
#include "ridge/lower/rewrite_rules.h"

namespace ridge {

// relu(batch_norm(x)), add(batch_norm(x), r), relu(add(batch_norm(x), r))
//   -> batch_norm(x, r; epilogue), for the training and the inference form;
// batch_norm_grad(x, ..., relu_grad(dy, relu(y))) -> batch_norm_grad(x, ..., dy; relu=1),
//   where y is that norm of x.
// Each where `rules` fuse it.
Result<Graph> FuseNorms(Graph graph, const RewriteRules& rules);

}  // namespace ridge
