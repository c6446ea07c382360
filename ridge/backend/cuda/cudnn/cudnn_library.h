// Attention and convolutions by cuDNN.
#pragma once
#include "ridge/backend/cuda/cuda_context.h"
#include "ridge/backend/cuda/cudnn/cudnn_plugin.h"
#include "ridge/backend/cuda/kernel_library.h"

namespace ridge::cuda {

// Kernels whose bits are the same in each run.  With `tf32` operands of f32 convolutions may be
// rounded to it.  `context` outlives the library and its kernels.
std::unique_ptr<KernelLibrary> MakeCudnnLibrary(CudaContext& context,
                                                std::shared_ptr<CudnnSession> session, bool tf32);

// Fails as CudnnSession::Open() does.
Result<std::unique_ptr<KernelLibrary>> OpenCudnn(CudaContext& context, const GpuFacts& gpu,
                                                 const LibrarySearch& search, bool tf32);

}  // namespace ridge::cuda
