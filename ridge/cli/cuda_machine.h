// A GPU as the machine that a verb plans for and runs on.
#pragma once
#include <functional>

#include "ridge/backend/cuda/libraries.h"
#include "ridge/cli/machine.h"

namespace ridge::cli {

// Opens the driver, the GPU, its compiler and libraries.  The context that this makes counts as the
// runtime of every plan; `most` limits what plans take, with the context.  Fails with kDevice: no
// driver, no GPU, no NVRTC.
Result<OpenedMachine> OpenCudaMachine(int ordinal, const DeviceMemory& most,
                                      const cuda::LibraryOptions& options,
                                      const std::function<void(const std::string&)>& say);

}  // namespace ridge::cli
