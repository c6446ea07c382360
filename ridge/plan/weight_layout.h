// Layouts of weights: an optimizer's variables keep a layout that kernels read, for the whole run.
//
// A row-major parameter is copied into its readers' layouts in every step, and its gradient back.
// One that is kept in a reader's layout is read in place; reorders remain only for readers with
// other layouts, and for a gradient that neither has this layout nor is gathered by the optimizer.
// The sum of a gradient over the slices of a tree, read by the optimizer alone, lies as they do.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ridge/plan/planner.h"

namespace ridge {

struct WeightLayouts {
  std::map<std::string, LayoutId> variables;  // those that are not row-major
  // By step, by node: those of optimizers, and of casts of the variables, for these layouts.
  std::vector<std::map<int, KernelChoice>> kernels;
};

// The readers of each variable vote, in all steps; a parameter and its moments share a layout.
// Costs are the nominal device's; evaluations have a low weight.
// REQUIRES: the steps come from LowerGraph with row-major variables, and only views share bytes.
WeightLayouts VoteWeightLayouts(KernelQuery& kernels,
                                const std::vector<PersistentValue>& persistent,
                                const std::vector<StepPlan>& steps);

}  // namespace ridge
