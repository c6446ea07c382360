#include "ridge/plan/program.h"

namespace ridge {

const char* PurposeName(Purpose purpose) {
  static constexpr const char* kNames[] = {"parameters",  "gradients", "optimizer",
                                           "activations", "workspace", "inputs"};
  return kNames[static_cast<size_t>(purpose)];
}

const StepPlan* Program::Find(const std::string& name) const {
  for (const StepPlan& step : steps) {
    if (step.name == name) return &step;
  }
  return nullptr;
}

}  // namespace ridge
