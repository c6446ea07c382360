// The CPU backend: oneDNN's primitives and our own vector kernels, best first.  The reference
// kernel is last, so every operator runs.
//
// All kernels of a backend share one OpenMP team of `threads`.  With a fixed thread count a kernel
// gives the same bits in every run.
#pragma once
#include <memory>
#include <string>

#include "ridge/backend/backend.h"
#include "ridge/core/instructions.h"

namespace ridge {

// Which kernels convolutions may use.  kDirect: only those that sum the products of the formula, to
// compare bits with other programs; kAuto: also Winograd's, where they are faster.
enum class ConvKernels : uint8_t { kAuto, kDirect };

// Which kernels are offered.  kAll: also those that are chosen only by measured times.
enum class OfferedKernels : uint8_t { kUsual, kAll };

// Makes the calling thread's team (parallel.h): the backend's kernels must run on this thread.
// Fails with kInvalidArgument when threads < 1 or more than OMP_THREAD_LIMIT, with kDevice when
// OpenMP gives fewer.
Result<std::unique_ptr<Backend>> MakeCpuBackend(int threads, ConvKernels conv = ConvKernels::kAuto,
                                                OfferedKernels offered = OfferedKernels::kUsual);

// The kernels of another CPU with these instructions, none of which runs here: Create fails with
// kUnsupported.  Asks the library where it has the same instructions, else onednn_rules.h.
// Fails as MakeCpuBackend does.
Result<std::unique_ptr<Backend>> MakePlannedCpu(int threads, const InstructionSet& instructions,
                                                ConvKernels conv, OfferedKernels offered);
// Whether there are answers about a CPU with these instructions.
bool CanPlanFor(const InstructionSet& instructions);

std::string CpuLibrary();  // "oneDNN 3.2.1"

}  // namespace ridge
