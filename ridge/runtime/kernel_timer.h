// TimeKernels: how long several kernels take for one node.
//
// For choosing between them on request.  The rehearsal times a plan's own kernels where they lie;
// here all kernels of a call read the same made-up operands.
#pragma once
#include <vector>

#include "ridge/backend/backend.h"

namespace ridge {

// Seconds of each choice: the least of several rounds, which go over all choices in turn, so that a
// slow moment of the machine meets each of them.  `op` is nullptr for a reorder of call.inputs[0].
// REQUIRES: the choices are offers of `backend` for this call.
// Fails with kOutOfMemory when the operands cannot be mapped, and as kernels do.
Result<std::vector<double>> TimeKernels(Backend& backend, const OpDef* op, const OpCall& call,
                                        const std::vector<KernelChoice>& choices);

}  // namespace ridge
