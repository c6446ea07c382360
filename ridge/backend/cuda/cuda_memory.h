// Memory of a GPU, and of the host for copies to and from it.
#pragma once
#include <memory>

#include "ridge/backend/cuda/cuda_context.h"
#include "ridge/backend/device.h"

namespace ridge::cuda {

// Memory mapped between two ranges of addresses that stay unmapped: a kernel that writes outside of
// it ends with an error.  `page_bytes`: the driver's granularity, of which it has a whole number.
// Those of `host` are locked pages of the host.  Where it follows them, they are on its NUMA node
// `nearest`, or on another one where the driver refuses that.  Fails with kDeviceMemory, and as the
// driver does.
Result<std::unique_ptr<Memory>> MapArena(CudaContext& context, int64_t bytes, int64_t page_bytes,
                                         const HostPart& host = {}, int nearest = 0);

// The same for a GPU without virtual memory management: no guards, and the driver may round up.
Result<std::unique_ptr<Memory>> AllocateArena(CudaContext& context, int64_t bytes,
                                              int64_t page_bytes);

// Locked pages of the host.
Result<std::unique_ptr<Memory>> AllocateHost(CudaContext& context, int64_t bytes);

}  // namespace ridge::cuda
