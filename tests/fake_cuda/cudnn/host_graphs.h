// The graphs that cuDNN is asked for, computed on the host.
#pragma once
#include <array>

#include "ridge/backend/cuda/cudnn/cudnn_abi.h"

namespace ridge::fake_cuda {

using HostTensors = std::array<void*, RIDGE_CUDNN_SLOTS>;  // absent ones: nullptr

// Why cuDNN refuses the question; nullptr where it takes it.
const char* RefusalOf(const RidgeCudnnQuestion& question);
// Sums are in double, and results rounded once.  REQUIRES: RefusalOf() is nullptr.
void RunGraph(const RidgeCudnnQuestion& question, const HostTensors& tensors);

}  // namespace ridge::fake_cuda
