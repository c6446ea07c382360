// The kernel of a planned node: the backend's, a copy, or one of the host's within a device's step.
#pragma once
#include <memory>

#include "ridge/backend/backend.h"
#include "ridge/plan/program.h"

namespace ridge {

// A kernel of backend.host() waits for the device's work, and has run when Enqueue() returns.
// REQUIRES: a node of no tree and no mesh; backend.host() is there where the host runs it.
Result<std::unique_ptr<Kernel>> MakeStepKernel(const StepPlan& step, const PlannedNode& node,
                                               Backend& backend);

// Whether the host runs any node.
bool HasNodesOnHost(const Program& program);

// Makes ready what MakeStepKernel() needs for all nodes of a program.
void PrepareKernels(const Program& program, Backend& backend);

}  // namespace ridge
