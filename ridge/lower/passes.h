// The passes that know kernels; the contract is that of graph/passes/passes.h.
#pragma once
#include "ridge/graph/graph.h"
#include "ridge/lower/rewrite_rules.h"

namespace ridge {

// Removes transposes and slices of heads around attention, which then reads [B,T,H,D], or q, k and
// v in one value, as projections write them.  Most useful before differentiation.  # bitwise
Result<Graph> FoldHeadTransposes(Graph graph);

// Logits whose classes are no multiple of what the device's products need get more of them, of
// probability 0.  Names of what is padded end in kPaddedSuffix.  Most useful before
// differentiation.
inline constexpr char kPaddedSuffix[] = ".padded";
Result<Graph> PadProducts(Graph graph, const RewriteRules& rules);

// Where `rules` fuse them: conv, relu and max_pool become one conv_pool; pointwise nodes go into
// the epilogue of the matmul, conv or norm before them.  Those that are left go together into one
// `fused` node.  # bitwise
Result<Graph> Fuse(Graph graph, const RewriteRules& rules);

// The two halves of Fuse, in this order.  Copies of values (recompute.h) come between them: forward
// and backward of a pool are matched by the value that both read, and without the fused
// kernels the bits would be others.
Result<Graph> FuseConvPool(Graph graph, const RewriteRules& rules);
Result<Graph> FuseNeighbours(Graph graph, const RewriteRules& rules);

}  // namespace ridge
