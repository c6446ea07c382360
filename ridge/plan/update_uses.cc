#include "ridge/plan/update_uses.h"

namespace ridge {

void UpdateUses::Extend(const StepPlan& step) {
  const size_t known = writer_.size();
  writer_.resize(step.values.size(), -1);
  reads_.resize(step.values.size());
  views_.resize(step.values.size());
  for (size_t v = known; v < step.values.size(); ++v) {
    const int from = step.values[v].shares_with;  // made before v
    roots_.push_back(from >= 0 ? roots_[static_cast<size_t>(from)] : static_cast<int>(v));
    if (from >= 0) views_[static_cast<size_t>(from)].push_back(static_cast<int>(v));
  }
  for (; nodes_ < step.nodes.size(); ++nodes_) {
    const PlannedNode& node = step.nodes[nodes_];
    const int n = static_cast<int>(nodes_);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] >= 0)
        reads_[static_cast<size_t>(node.inputs[i])].emplace_back(n, static_cast<int>(i));
    }
    for (int output : node.outputs) writer_[static_cast<size_t>(output)] = n;
  }
}

std::vector<int> UpdateUses::WithViews(int value) const {
  std::vector<int> over = {value};
  for (size_t i = 0; i < over.size(); ++i) {
    const std::vector<int>& views = views_[static_cast<size_t>(over[i])];
    over.insert(over.end(), views.begin(), views.end());
  }
  return over;
}

}  // namespace ridge
