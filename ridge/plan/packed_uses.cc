#include "ridge/plan/packed_uses.h"

namespace ridge {

StepUses::StepUses(const StepPlan& step, size_t persistent)
    : base_(persistent, -1),
      writes_(persistent, 0),
      reads_(step.values.size()),
      writer_(step.values.size(), -1),
      shown_(step.values.size(), false) {
  for (size_t n = 0; n < step.nodes.size(); ++n) {
    const PlannedNode& node = step.nodes[n];
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] >= 0)
        reads_[static_cast<size_t>(node.inputs[i])].push_back(
            {static_cast<int>(n), static_cast<int>(i)});
    }
    for (const int output : node.outputs)
      writer_[static_cast<size_t>(output)] = static_cast<int>(n);
  }
  for (size_t v = 0; v < step.values.size(); ++v) {
    const PlannedValue& value = step.values[v];
    if (value.shares_with >= 0) shown_[static_cast<size_t>(value.shares_with)] = true;
    if (!value.persistent || value.persistent_index < 0) continue;
    const auto variable = static_cast<size_t>(value.persistent_index);
    if (writer_[v] >= 0) {
      ++writes_[variable];
      changes_ = true;
    } else if (value.shares_with < 0) {
      base_[variable] = static_cast<int>(v);
    }
  }
  for (const auto& [name, value] : step.outputs) shown_[static_cast<size_t>(value)] = true;
}

}  // namespace ridge
