// Pools over three spatial dimensions, and their gradients.
#pragma once
#include <memory>

#include "ridge/backend/backend.h"

namespace ridge::cpu {

// A kernel for max_pool, avg_pool or a gradient of one of them, in f32, x [B, C, D, H, W] in blocks
// of `lanes` channels (1: row-major).  REQUIRES: lanes <= 16; no tensor is empty.
std::unique_ptr<Kernel> MakePool3d(const OpDef& op, const OpCall& call, int64_t lanes, int threads);

}  // namespace ridge::cpu
