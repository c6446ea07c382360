// Mixed precision: products in 16 bits, everything else unchanged.
//
// The transform runs on a whole training graph, after the passes that look for patterns of f32
// nodes and before `fuse`, which merges casts into the pointwise nodes that write their inputs.
// Gradients need no special rule: their products are ordinary products.
#pragma once
#include "ridge/graph/graph.h"
#include "ridge/lower/kernel_query.h"

namespace ridge {

// Whether the product has so much arithmetic for each element of its two operands and its result
// that 16 bits save more time than casts cost.
bool PaysForCasts(const OpDef& op, const OpCall& product, const ReducedRates& rates);

// Every matmul, conv, conv_grad_input and conv_grad_weight of f32 that has enough arithmetic to pay
// for the casts reads its operands as `operands` (bf16 or f16), each value cast once for all its
// readers, adds up in f32 and writes f32; bias and epilogue stay f32.  Parameters, their updates
// and all other operators stay f32, and so do products with keep_f32 (graph/keep_f32.h) and
// convolutions that `kernels` run faster in f32, by an algorithm with fewer multiplications.  Where
// the device does not multiply `operands`, the products are those of f32, of operands that are
// rounded.
//
// # each product within the rounding of its operands: 2^-8 of |a| |b| for bf16
Result<Graph> AutocastMatmuls(Graph graph, DType operands, KernelQuery& kernels);

}  // namespace ridge
