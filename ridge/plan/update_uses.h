// Who reads and writes the values of a step that is being lowered.
#pragma once
#include <utility>
#include <vector>

#include "ridge/plan/program.h"

namespace ridge {

class UpdateUses {
 public:
  // Notes what was added since the last call, so that all calls together take time linear in the
  // nodes.
  void Extend(const StepPlan& step);

  int WriterOf(int value) const { return writer_[static_cast<size_t>(value)]; }  // -1: none
  const std::vector<std::pair<int, int>>& ReadsOf(int value) const {             // (node, input)
    return reads_[static_cast<size_t>(value)];
  }
  // The value whose bytes it has.
  int RootOf(int value) const { return roots_[static_cast<size_t>(value)]; }
  // All values whose bytes are the value's: itself and its views.
  std::vector<int> WithViews(int value) const;

 private:
  std::vector<int> writer_;
  std::vector<std::vector<std::pair<int, int>>> reads_;
  std::vector<std::vector<int>> views_;
  std::vector<int> roots_;
  size_t nodes_ = 0;
};

}  // namespace ridge
