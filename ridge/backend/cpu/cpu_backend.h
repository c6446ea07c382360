// The CPU backend: oneDNN's primitives and our own vector kernels, best first, and behind all of
// them the reference kernel, so every operator runs.
//
// All kernels of a backend share one OpenMP team of `threads`.  With a fixed thread count a kernel
// gives the same bits in every run.
#pragma once
#include <memory>

#include "ridge/backend/backend.h"

namespace ridge {

// Fails with kInvalidArgument when threads < 1.
Result<std::unique_ptr<Backend>> MakeCpuBackend(int threads);

}  // namespace ridge
