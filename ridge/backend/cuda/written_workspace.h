// WrittenWorkspace: the bytes that kernels of ours take, for plans of GPUs that are not here.
#pragma once
#include <cstdint>
#include <optional>

#include "ridge/graph/op_def.h"

namespace ridge::cuda {

// Workspace of the kernel that a run on any GPU takes for the call, where we write it: in whichever
// of its layouts takes more.  None where a run leaves the call to cuDNN or cuBLASLt, and where no
// kernel takes it.  `library_bytes` is what the library would take: cuDNN gets no attention that
// takes more than a limit.
std::optional<int64_t> WrittenWorkspace(const OpDef& op, const OpCall& call, int64_t library_bytes);

}  // namespace ridge::cuda
