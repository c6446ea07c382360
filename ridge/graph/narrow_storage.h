// Activations stored in 16 bits, computed in f32.
//
// The transform runs on a whole training graph whose products read 16 bits already (precision.h),
// after `fuse`: a pointwise node then is one pass over memory, and casts become steps inside it.
// Nothing but the type of what lies in memory between two nodes changes.
#pragma once
#include "ridge/graph/graph.h"
#include "ridge/graph/kernel_query.h"

namespace ridge {

// Large f32 results become `narrow` (bf16 or f16) where the nodes that write and read them can take
// them so and bytes are saved: around products, norms, pools, and in pointwise nodes.  Each such
// value is rounded once, when it is written.  Variables, gradients of parameters, statistics, and
// what lies between the last product and the outputs (the loss) stay f32.
// A node takes narrow tensors where `kernels` has a kernel for them about as good as that for f32.
Result<Graph> StoreNarrow(Graph graph, DType narrow, KernelQuery& kernels);

}  // namespace ridge
