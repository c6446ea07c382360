// A GPU as the machine that a verb plans for and runs on.
#pragma once
#include <functional>
#include <string>

#include "ridge/cli/machine.h"

namespace ridge::cli {

struct CudaChoice {
  int ordinal = 0;               // N of cuda:N
  DeviceMemory most;             // --device-memory
  bool tf32 = false;             // products of f32 are rounded to it
  std::string launch = "graph";  // --launch
};

// Opens the driver, the GPU, its compiler and libraries.  The context that this makes counts as the
// runtime of every plan; `choice.most` limits what plans take, with the context.  Fails with
// kDevice: no driver, no GPU, no NVRTC.
Result<OpenedMachine> OpenCudaMachine(const CudaChoice& choice,
                                      const std::function<void(const std::string&)>& say);

}  // namespace ridge::cli
