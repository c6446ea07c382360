// NVIDIA's libraries whose kernels stand before ours.
#pragma once
#include <functional>
#include <string>

#include "ridge/backend/cuda/cuda_device.h"
#include "ridge/backend/cuda/kernel_library.h"
#include "ridge/backend/cuda/library_search.h"

namespace ridge::cuda {

// Those that are found; `say` is told the version of each, or what runs without it.  `device`
// outlives them.  Fails with kDevice where one is there and broken, or the GPU is.
Result<KernelLibraries> OpenLibraries(CudaDevice& device, const LibrarySearch& search,
                                      const std::function<void(const std::string&)>& say,
                                      const LibraryOptions& options = {});

}  // namespace ridge::cuda
