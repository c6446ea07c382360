// The tensors that kernels take in 16 bits while all else is f32, as most devices have them.
#pragma once
#include <vector>

#include "ridge/lower/rewrite_rules.h"

namespace ridge {

// Attention, norms and pools have kernels for 16 bits, products write them, views don't look.
// Statistics, weights, labels and tables of a rotary embedding stay f32.
std::vector<DTypeGroup> UsualReducedGroups(const OpDef& op);

// As kernels of GPUs take them: what a norm adds has the type of its input.
std::vector<DTypeGroup> GpuReducedGroups(const OpDef& op);

// As ridge's kernels for CUDA take them: rows of any type at the memory's speed.
std::vector<DTypeGroup> CudaReducedGroups(const OpDef& op);

}  // namespace ridge
