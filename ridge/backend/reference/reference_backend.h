// The reference backend: runs OpDef::reference.  Slow and simple; other backends are tested against
// it.
//
// Every float is computed in double and rounded once to the node's dtype.  The double copies live
// in the node's workspace, so the plan knows them and nothing is allocated in a step.
#pragma once
#include <memory>

#include "ridge/backend/backend.h"

namespace ridge {

std::unique_ptr<Backend> MakeReferenceBackend();

// For backends that fall back to the reference for some operators.
KernelChoice ReferenceChoice(const OpDef& op, const OpCall& call);
// REQUIRES: `op` outlives the kernel (operators live as long as the program).
std::unique_ptr<Kernel> CreateReferenceKernel(const OpDef& op, const OpCall& call);

}  // namespace ridge
