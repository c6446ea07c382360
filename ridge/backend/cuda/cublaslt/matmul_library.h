// Products by cuBLASLt: the kernels of matmul that are not ours.
#pragma once
#include <memory>

#include "ridge/backend/cuda/cuda_device.h"
#include "ridge/backend/cuda/kernel_library.h"
#include "ridge/backend/cuda/library_search.h"

namespace ridge::cuda {

// `device` outlives the library.  Fails with kDevice: cuBLASLt is not found, or does not begin on
// this GPU.
Result<std::unique_ptr<KernelLibrary>> OpenCublasLt(CudaDevice& device, const LibrarySearch& search,
                                                    const LibraryOptions& options);

}  // namespace ridge::cuda
