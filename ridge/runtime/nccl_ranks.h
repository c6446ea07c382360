// Ranks that exchange the memory of their GPUs by NCCL.
#pragma once
#include <memory>

#include "ridge/backend/cuda/nccl/nccl.h"
#include "ridge/dist/communicator.h"

namespace ridge {

// The ranks of `ranks`, each with its place in `group`, for spans of GPU memory.  NCCL waits
// without a word, so `ranks` is told when this one waits in an exchange, and names a rank that is
// late. `ranks` outlives the result.
std::unique_ptr<Communicator> RanksOfGroup(Communicator& ranks,
                                           std::unique_ptr<cuda::NcclGroup> group, Stream& stream);

}  // namespace ridge
