// Reduced-precision storage: activations are stored in 16 bits and computed in f32.
//
// The transform runs on a whole training graph whose products read 16 bits already (autocast.h),
// after `fuse`: a pointwise node then is one pass over memory, and casts become steps inside it.
// Only the storage type of values between nodes changes.
#pragma once
#include "ridge/graph/graph.h"
#include "ridge/lower/kernel_query.h"

namespace ridge {

// Large f32 results become `reduced` (bf16 or f16) where their producer and readers support it and
// bytes are saved: around products, norms, pools, and in pointwise nodes.  Each such value is
// rounded once, when it is written.  Variables, gradients of parameters, statistics, and values
// between the last product and the outputs (the loss) stay f32, and what a node with keep_f32
// reads or writes.  The result of a last product with narrow_result (graph/keep_f32.h) may become
// `reduced`; outputs themselves stay f32, by a cast.
// A node supports `reduced` if `kernels` has a kernel for it about as good as that for f32.
Result<Graph> AutocastActivations(Graph graph, DType reduced, KernelQuery& kernels);

// Where `rules` give no f32 sums, results of convolutions of `reduced` operands become `reduced`,
// too, each with a cast behind it: a step of the pointwise nodes that read it, a node of its own
// for other readers and for what leaves the graph.
Result<Graph> NarrowConvolutions(Graph graph, DType reduced, const RewriteRules& rules);

}  // namespace ridge
