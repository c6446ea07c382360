// Kernels that write and verify patterns of memory_pattern.h in a GPU's memory.
#pragma once
#include "ridge/backend/cuda/cuda_device.h"
#include "ridge/backend/cuda/kernel_compiler.h"
#include "ridge/backend/cuda/kernel_text.h"
#include "ridge/backend/memory_pattern.h"

namespace ridge::cuda {

KernelText PatternText(const PatternCall& call);

// `device` outlives them.  Fails as KernelCompiler::Compile and CudaModule::Load do.
Result<PatternKernels> MakeCudaPatternKernels(CudaDevice& device, KernelCompiler& compiler,
                                              const PatternCall& call);

}  // namespace ridge::cuda
