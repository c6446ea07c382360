// Global-norm clipping as nodes.
#pragma once
#include <vector>

#include "ridge/graph/builder.h"

namespace ridge {

// norm = sqrt(sum over all gradients of sum(grad^2))
// grad = grad * min(1, max_norm / (norm + 1e-6))
// as torch.nn.utils.clip_grad_norm_.  Replaces `grads` and returns the norm before clipping.
// With `inverse`, f32[], that is of inverse * grad.
// REQUIRES: max_norm > 0; at least one gradient, all of one float type.
Value ClipByGlobalNorm(GraphBuilder& b, double max_norm, std::vector<Value>& grads,
                       Value inverse = {});

}  // namespace ridge
