// Kernels one at a time, for finding the node that fails.
#pragma once
#include <memory>
#include <string>

#include "ridge/backend/backend.h"

namespace ridge::cuda {

// `kernel`, whose end is waited for after each launch: what fails there is its own error, which
// begins with `where`, such as "node 'conv1' (conv)".
std::unique_ptr<Kernel> WaitForEach(std::unique_ptr<Kernel> kernel, std::string where);

}  // namespace ridge::cuda
