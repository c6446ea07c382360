// What plans of GPUs that are not here ask: kernels of ours, with cuBLASLt and cuDNN.
#pragma once
#include "ridge/lower/absent_kernels.h"

namespace ridge::cuda {

// Texts of kernels, and what libraries are asked, are the same on every GPU.
const AbsentKernels& KernelsOfAbsentGpus();

// Whether any kernel joins neighbours' steps to the operator.
bool JoinsSteps(const OpDef& op);

}  // namespace ridge::cuda
