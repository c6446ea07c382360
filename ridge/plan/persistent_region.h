// PersistentRegion: the values that live for the whole run, collected while graphs are lowered.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ridge/plan/planner.h"

namespace ridge {

struct PersistentRegion {
  std::vector<PersistentValue> values;  // in order of first use
  std::map<std::string, int> by_name;   // slot 0; slot 1 follows it

  // By variable that an optimizer updates: the layout of its first reader, once it is known.  The
  // variable may be kept in that layout (weight_layout.h), so a copy into it costs less than
  // others.
  std::map<std::string, std::optional<LayoutId>> first_reads;

  // By variable: the layout in which it is kept; the others are row-major.
  std::map<std::string, LayoutId> layouts;

  // The states of a micro batch, and how many copies of each there are.
  std::map<std::string, int64_t> copies;
  int64_t alignment_bytes = 64;  // of each
  LayoutId LayoutOf(const std::string& variable) const;

  // The index of a variable, input or constant in `values`; a new name is added.  An input gets
  // `slots` entries; a `sliced` input holds the parts of all slices of the step.
  Result<int> IndexOf(const ValueInfo& info, const StepPlan& step, bool sliced, int slots);
};

// Names of the variables that an optimizer updates in one of the graphs, all without a reader.
std::map<std::string, std::optional<LayoutId>> OptimizedVariables(
    const std::vector<NamedGraph>& graphs);

bool IsVariable(const ValueInfo& info);
bool IsOptimizer(const Node& node);
Purpose PurposeOf(const ValueInfo& info);

}  // namespace ridge
