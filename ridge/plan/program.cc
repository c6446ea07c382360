#include "ridge/plan/program.h"

namespace ridge {

const char* PurposeName(Purpose purpose) {
  static constexpr const char* kNames[] = {"parameters",  "gradients", "optimizer",
                                           "activations", "workspace", "inputs"};
  return kNames[static_cast<size_t>(purpose)];
}

int64_t RunsOf(const StepPlan& step, const PlannedNode& node) {
  if (node.turn == Turn::kLast) return 1;
  return node.turn == Turn::kLater ? step.slices - 1 : step.slices;
}

const StepPlan* Program::Find(const std::string& name) const {
  for (const StepPlan& step : steps) {
    if (step.name == name) return &step;
  }
  return nullptr;
}

std::vector<int> RootValues(const StepPlan& step) {
  std::vector<int> roots(step.values.size(), -1), chain;
  for (int v = 0; v < static_cast<int>(step.values.size()); ++v) {
    int at = v;
    chain.clear();
    while (roots[static_cast<size_t>(at)] < 0) {  // chains are as long as the plan: walked once
      chain.push_back(at);
      const int from = step.values[static_cast<size_t>(at)].shares_with;
      if (from < 0) break;
      at = from;
    }
    const int known = roots[static_cast<size_t>(at)];
    for (const int value : chain) roots[static_cast<size_t>(value)] = known >= 0 ? known : at;
  }
  return roots;
}

}  // namespace ridge
