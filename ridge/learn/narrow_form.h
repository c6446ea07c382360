// NarrowForm: an inference graph whose weights are kept in 16 bits, as models are served.
//
// Products, attention and embeddings read 16 bits and add up in f32; norms, biases and all else are
// f32, as lower/autocast.h has them in training, where the weights stay f32.
#pragma once
#include "ridge/graph/graph.h"

namespace ridge {

// `narrow`: bf16 or f16.  Tables and the operands of products that are parameters of f32 become
// parameters of this type; what else reads one sees it cast.
// # each product within the rounding of its operands: 2^-8 of |a| |b| for bf16
Result<Graph> NarrowForm(const Graph& inference, DType narrow);

}  // namespace ridge
