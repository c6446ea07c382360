// Attention and convolutions by cuDNN.
#pragma once
#include "ridge/backend/cuda/cuda_context.h"
#include "ridge/backend/cuda/cudnn/cudnn_plugin.h"
#include "ridge/backend/cuda/kernel_library.h"

namespace ridge::cuda {

// Kernels whose bits are the same in each run.  `context` outlives the library and its kernels.
std::unique_ptr<KernelLibrary> MakeCudnnLibrary(CudaContext& context,
                                                std::shared_ptr<CudnnSession> session,
                                                const LibraryOptions& options);

// Fails as CudnnSession::Open() does.
Result<std::unique_ptr<KernelLibrary>> OpenCudnn(CudaContext& context, const GpuFacts& gpu,
                                                 const LibrarySearch& search,
                                                 const LibraryOptions& options);

}  // namespace ridge::cuda
