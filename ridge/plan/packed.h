// Packed variables: an optimizer's variables keep a layout that kernels read, for the whole run.
//
// A row-major parameter is copied into its readers' layouts in every step, and its gradient back.
// A packed one is read in place; reorders remain only for readers with other layouts, and for a
// gradient that neither has this layout nor is gathered by the optimizer.
#pragma once
#include <vector>

#include "ridge/plan/planner.h"

namespace ridge {

// Chooses the layouts by the readers in all steps; a parameter and its moments share one.  Costs
// are the nominal device's; evaluations have a low weight.  Removes the copies that become
// redundant and lets the others read the new layout.
// REQUIRES: the steps come from LowerGraph, and only views share bytes.
void KeepPacked(KernelQuery& kernels, std::vector<PersistentValue>& persistent,
                std::vector<StepPlan>& steps);

}  // namespace ridge
