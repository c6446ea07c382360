// Who reads and writes the values of a lowered step, and changes of its list of nodes.
#pragma once
#include <utility>
#include <vector>

#include "ridge/plan/program.h"

namespace ridge {

// Input `input` of node `node`.
struct Read {
  int node, input;
};

// As the step was when this was made; values added since are unknown to it.
class StepUses {
 public:
  StepUses(const StepPlan& step, size_t persistent);

  // The value that has the variable's contents before the step; -1: it is not used.
  int Base(int variable) const { return base_[static_cast<size_t>(variable)]; }
  // How many values are written into the variable.
  int Writes(int variable) const { return writes_[static_cast<size_t>(variable)]; }
  const std::vector<Read>& ReadsOf(int value) const { return reads_[static_cast<size_t>(value)]; }
  int WriterOf(int value) const { return writer_[static_cast<size_t>(value)]; }  // -1: none
  // Has views, or is an output.
  bool IsShown(int value) const { return shown_[static_cast<size_t>(value)]; }
  bool changes() const { return changes_; }  // any variable

 private:
  std::vector<int> base_, writes_;  // by persistent value
  std::vector<std::vector<Read>> reads_;
  std::vector<int> writer_;
  std::vector<bool> shown_;
  bool changes_ = false;
};

// Nodes keep their numbers until Apply().
class NodeEdits {
 public:
  void Remove(int node) { removed_.push_back(node); }
  void Insert(int before, PlannedNode node) { inserted_.emplace_back(before, std::move(node)); }
  void Apply(std::vector<PlannedNode>& nodes);

 private:
  std::vector<int> removed_;
  std::vector<std::pair<int, PlannedNode>> inserted_;
};

}  // namespace ridge
