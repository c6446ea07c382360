// What the kernels that exchange with other ranks have in common.
#pragma once
#include <memory>

#include "ridge/backend/backend.h"

namespace ridge {

// Fails with kUnavailable: of a plan that is timed without the other ranks.
std::unique_ptr<Kernel> MakeNobodyElse(int64_t ranks);

// Runs the kernel, and adds its seconds to what a step spends in collectives.  `spent_s` and the
// backend outlive it.
std::unique_ptr<Kernel> Timed(std::unique_ptr<Kernel> kernel, Backend& backend, double& spent_s);

}  // namespace ridge
