// PersistentRegion: the values that live as long as the program, while its graphs are lowered.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ridge/plan/planner.h"

namespace ridge {

struct PersistentRegion {
  std::vector<PersistentValue> values;  // in order of first use
  std::map<std::string, int> by_name;   // slot 0; slot 1 follows it

  // Variables that an optimizer updates, and the layout in which each is read first (kUnread: not
  // yet).  They may lie in it from step to step (packed.h): that copy costs less than others.
  static constexpr LayoutId kUnread = -1;
  std::map<std::string, LayoutId> homes;

  // The place of a variable, input or constant; made when the name is new.  Inputs get `slots`
  // places; one that is `sliced` holds what all slices of the step read.
  Result<int> IndexOf(const ValueInfo& info, const StepPlan& step, bool sliced, int slots);
};

// Names of the variables that an optimizer updates in one of the graphs, all unread.
std::map<std::string, LayoutId> OptimizedVariables(const std::vector<NamedGraph>& graphs);

bool IsVariable(const ValueInfo& info);
bool IsOptimizer(const Node& node);
Purpose PurposeOf(const ValueInfo& info);

}  // namespace ridge
