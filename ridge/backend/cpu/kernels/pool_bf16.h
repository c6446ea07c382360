// Pools of bf16 over one or two spatial dimensions.
#pragma once
#include "ridge/backend/backend.h"
#include "ridge/backend/cpu/kernels/pool_rows.h"

namespace ridge::cpu {

int64_t PoolBF16WorkspaceBytes(const PoolShape& shape, int threads);

// The kernel of max_pool, avg_pool or one of their gradients.  `divisors` is for averages.
std::unique_ptr<Kernel> MakePoolBF16(const OpDef& op, PoolShape shape, std::vector<float> divisors,
                                     int threads);

}  // namespace ridge::cpu
