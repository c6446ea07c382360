// The kernels of NVIDIA's GPUs: those of libraries, and texts of ours, compiled when a node is made
// ready.
#pragma once
#include <memory>
#include <string>

#include "ridge/backend/backend.h"
#include "ridge/backend/cuda/cuda_device.h"
#include "ridge/backend/cuda/kernel_compiler.h"
#include "ridge/backend/cuda/kernel_library.h"

namespace ridge::cuda {

struct BackendOptions {
  bool waits_for_each = false;  // waits for each kernel, so that an error names its node
};

// A library's kernel comes before ours.  An operator without a kernel has no candidates: nothing
// runs on the host instead.  `device` outlives the backend.
std::unique_ptr<Backend> MakeCudaBackend(CudaDevice& device, KernelCompiler compiler,
                                         KernelLibraries libraries = {},
                                         const BackendOptions& options = {});

// Folder of compiled kernels: CacheFolder()/cubin.
std::string CubinFolder();

}  // namespace ridge::cuda
