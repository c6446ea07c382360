// The kernels of NVIDIA's GPUs: texts of ours, compiled when a node is made ready.
#pragma once
#include <memory>
#include <string>

#include "ridge/backend/backend.h"
#include "ridge/backend/cuda/cuda_device.h"
#include "ridge/backend/cuda/kernel_compiler.h"

namespace ridge::cuda {

// All tensors are row-major.  An operator without a kernel has no candidates: nothing runs on the
// host instead.  `device` outlives the backend.
std::unique_ptr<Backend> MakeCudaBackend(CudaDevice& device, KernelCompiler compiler);

// Folder of compiled kernels: CacheFolder()/cubin.
std::string CubinFolder();

}  // namespace ridge::cuda
