// Kernels one at a time, for finding the node that fails.
#pragma once
#include <memory>
#include <string>

#include "ridge/backend/backend.h"

namespace ridge::cuda {

// `kernel`, whose Enqueue() waits for its end and returns the error, behind `where`: "conv
// 'conv1'".
std::unique_ptr<Kernel> WaitForEach(std::unique_ptr<Kernel> kernel, std::string where);

}  // namespace ridge::cuda
