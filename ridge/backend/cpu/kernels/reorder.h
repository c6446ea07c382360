// Reorders between two blocked layouts as one strided copy, where no block is padded.
#pragma once
#include <memory>
#include <optional>

#include "oneapi/dnnl/dnnl.hpp"
#include "ridge/backend/backend.h"
#include "ridge/backend/cpu/kernels/strided_copy.h"

namespace ridge::cpu {

// nullopt where oneDNN's reorder is the better one: padding, blocks that do not divide each other,
// other types, or runs so short that squares cannot be turned in registers.
std::optional<StridedCopy> PlanStridedReorder(const dnnl::memory::desc& from,
                                              const dnnl::memory::desc& to, int64_t element_bytes);

std::unique_ptr<Kernel> MakeStridedReorder(StridedCopy copy, int threads);

}  // namespace ridge::cpu
