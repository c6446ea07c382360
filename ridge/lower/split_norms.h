// SplitNorms: batch norms over slices in step, in the parts that exchange statistics.
//
//   y, mean, var = batch_norm(x, scale, shift; slices)
//     -> batch_norm_moments(x), gather_slices, batch_norm_combine, batch_norm_inference
//   dx, dscale, dshift = batch_norm_grad(x, scale, mean, var, dy; slices)
//     -> batch_norm_grad_sums, gather_slices, batch_norm_grad_input
//
// It runs behind the passes that match norms, so these know nothing of the parts.
#pragma once
#include "ridge/graph/graph.h"

namespace ridge {

// Norms of one slice stay as they are.
Result<Graph> SplitNorms(Graph graph);

}  // namespace ridge
