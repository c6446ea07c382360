// Use-def tables of a lowered step.
#pragma once
#include <vector>

#include "ridge/plan/program.h"

namespace ridge {

// Input `input` of node `node`.
struct Read {
  int node, input;
};

// A snapshot: does not know values that are added after construction.
class StepUses {
 public:
  StepUses(const StepPlan& step, size_t persistent);

  // The value that holds the variable's contents before the step; -1: the step does not use it.
  int Base(int variable) const { return base_[static_cast<size_t>(variable)]; }
  // How many values are written into the variable.
  int Writes(int variable) const { return writes_[static_cast<size_t>(variable)]; }
  const std::vector<Read>& ReadsOf(int value) const { return reads_[static_cast<size_t>(value)]; }
  int WriterOf(int value) const { return writer_[static_cast<size_t>(value)]; }  // -1: none
  // Whether the value has views or is an output.
  bool IsShown(int value) const { return shown_[static_cast<size_t>(value)]; }
  bool changes() const { return changes_; }  // whether the step writes a variable

 private:
  std::vector<int> base_, writes_;  // by persistent value
  std::vector<std::vector<Read>> reads_;
  std::vector<int> writer_;
  std::vector<bool> shown_;
  bool changes_ = false;
};

}  // namespace ridge
