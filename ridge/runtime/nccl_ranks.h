// Ranks that exchange the memory of their GPUs by NCCL.
#pragma once
#include <memory>

#include "ridge/backend/cuda/nccl/nccl.h"
#include "ridge/dist/communicator.h"

namespace ridge {

// The ranks of `ranks`, each with its place in `group`, for spans of GPU memory.  When an exchange
// is enqueued everywhere, the hosts meet by `ranks`, which names a rank that is late: NCCL waits
// without a word.  `ranks` outlives the result.
std::unique_ptr<Communicator> RanksOfGroup(Communicator& ranks,
                                           std::unique_ptr<cuda::NcclGroup> group, Stream& stream);

}  // namespace ridge
