// TimeKernels: measures several kernels for one node, to choose between them on request.
//
// The rehearsal times a plan's own kernels in the plan's arena; here all kernels of a call read the
// same random operands.
#pragma once
#include <vector>

#include "ridge/backend/backend.h"

namespace ridge {

// Seconds of each choice by the device's clock: the minimum of several rounds.  Each round runs all
// choices in turn, so that a slow period of the machine affects all of them.  `op` is nullptr for a
// reorder of call.inputs[0]. REQUIRES: the choices are candidates of `backend` for this call. Fails
// as Device::Allocate() and Kernel::Enqueue() do.
Result<std::vector<double>> TimeKernels(Backend& backend, const OpDef* op, const OpCall& call,
                                        const std::vector<KernelChoice>& choices);

}  // namespace ridge
