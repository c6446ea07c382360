// Use-def tables of a step that is being lowered.
#pragma once
#include <utility>
#include <vector>

#include "ridge/plan/program.h"

namespace ridge {

class UpdateUses {
 public:
  // Adds the nodes that are new since the last call: all calls together take time linear in the
  // nodes.
  void Extend(const StepPlan& step);

  int WriterOf(int value) const { return writer_[static_cast<size_t>(value)]; }  // -1: none
  const std::vector<std::pair<int, int>>& ReadsOf(int value) const {             // (node, input)
    return reads_[static_cast<size_t>(value)];
  }
  // The value that owns its bytes.
  int RootOf(int value) const { return roots_[static_cast<size_t>(value)]; }
  // The value and its views.
  std::vector<int> WithViews(int value) const;

 private:
  std::vector<int> writer_;
  std::vector<std::vector<std::pair<int, int>>> reads_;
  std::vector<std::vector<int>> views_;
  std::vector<int> roots_;
  size_t nodes_ = 0;
};

}  // namespace ridge
