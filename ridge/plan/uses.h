// Use-def and alias analysis of a StepPlan: who writes a value, who reads it, which values share
// bytes, and during which nodes the bytes are live.
//
// It follows from the nodes and PlannedValue::shares_with, never from offsets.  Time is linear in
// values, nodes and operands, for all calls of Extend() together.
#pragma once
#include <vector>

#include "ridge/plan/program.h"

namespace ridge {

// Which values share bytes: views with their source, results with the operand that they overwrite.
class SharedBytes {
 public:
  SharedBytes() = default;
  explicit SharedBytes(const StepPlan& step) { Extend(step); }

  // Adds the values that are new since the last call.
  void Extend(const StepPlan& step);
  // Lets `value`, a root, share the bytes of `with`.  PlannedValue::shares_with is the caller's.
  void Share(int value, int with);

  // The value that owns the bytes: the root of all that share them.
  int RootOf(int value) const { return root_[static_cast<size_t>(value)]; }
  bool IsShared(int value) const { return next_[static_cast<size_t>(value)] != value; }
  // All values that share bytes with `value`, itself first; in no order.
  std::vector<int> SharersOf(int value) const;

 private:
  std::vector<int> root_;
  std::vector<int> next_;  // values that share bytes form a ring
};

// Input `input` of node `node`.
struct Read {
  int node, input;
};

// A snapshot; Extend() adds what a pass appended.
class StepUses {
 public:
  StepUses() = default;
  explicit StepUses(const StepPlan& step) { Extend(step); }

  // Adds the values and nodes that are new since the last call.
  void Extend(const StepPlan& step);

  // The node that writes the value; -1: a view, or contents from before the step.
  int ProducerOf(int value) const { return producer_[static_cast<size_t>(value)]; }
  // In the order of the nodes.  A read of a view is not a read of its source.
  const std::vector<Read>& ReadsOf(int value) const { return reads_[static_cast<size_t>(value)]; }
  const SharedBytes& bytes() const { return bytes_; }
  // The last node that writes the bytes of `value`; -1: none.
  int LastWriteTo(int value) const;

 private:
  SharedBytes bytes_;
  std::vector<int> producer_;
  std::vector<std::vector<Read>> reads_;
  size_t nodes_ = 0;
};

// By value: the one whose contents it shows.  A view shows its source, every other value itself.
std::vector<int> ShownValues(const StepPlan& step, const StepUses& uses);

// What a step does with the persistent values, by persistent index.
class VariableUses {
 public:
  VariableUses(const StepPlan& step, const StepUses& uses, size_t persistent);

  // The first value that holds the contents from before the step; -1: the step does not use them.
  int Before(int variable) const { return before_[static_cast<size_t>(variable)]; }
  // How many values are written into it.
  int Writes(int variable) const { return writes_[static_cast<size_t>(variable)]; }
  bool any_writes() const { return any_writes_; }

 private:
  std::vector<int> before_, writes_;
  bool any_writes_ = false;
};

// By root: from the first node that touches the bytes to the last one; outputs live to the end.
// first > last: no node touches them.
std::vector<LiveRange> LiveRanges(const StepPlan& step, const SharedBytes& bytes);

}  // namespace ridge
