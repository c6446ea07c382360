// Variables that an optimizer updates may lie in a layout that kernels read, for the whole run.
//
// Row-major, such a parameter is copied into its readers' layouts in every step, and its gradient
// back.  Kept in one of these layouts it is read where it lies; what is still copied are the other
// layouts, and a gradient that neither comes in this one nor is gathered by the optimizer.
#pragma once
#include <vector>

#include "ridge/plan/planner.h"

namespace ridge {

// Chooses the layouts: a parameter goes with its moments, and the readers in all steps are looked
// at.  Costs are counted by the nominal device, evaluations as little.  Copies that are not needed
// any more go, others copy from the new layout.
// REQUIRES: the steps come from LowerGraph, and only views share bytes.
void KeepPacked(KernelQuery& kernels, int threads, std::vector<PersistentValue>& persistent,
                std::vector<StepPlan>& steps);

}  // namespace ridge
