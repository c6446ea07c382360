#include "ridge/plan/cost/gradient_times.h"

#include <algorithm>

#include "ridge/graph/ops/shared/update_group.h"
#include "ridge/plan/cost/times.h"
#include "ridge/plan/plan_json.h"
#include "ridge/plan/tree_sums.h"
#include "ridge/plan/uses.h"

namespace ridge {
namespace {

constexpr size_t kGradientOfUpdate = 1;  // of an update's own inputs in a group

// The parameter that the node updates, as persistent index; -1: it updates none.
int UpdatedBy(const Program& program, const StepPlan& step, const PlannedNode& node) {
  for (const int output : node.outputs) {
    const int variable = step.values[static_cast<size_t>(output)].persistent_index;
    if (variable < 0) continue;
    if (program.persistent[static_cast<size_t>(variable)].kind == ValueKind::kParameter)
      return variable;
  }
  return -1;
}

// The operand of the parameter's size that rests in no variable but a sum of gradients; -1: none.
int GradientOf(const Program& program, const StepPlan& step, const PlannedNode& node,
               int parameter) {
  const TensorType& type = program.persistent[static_cast<size_t>(parameter)].type;
  for (const int input : node.inputs) {
    if (input < 0) continue;
    const PlannedValue& value = step.values[static_cast<size_t>(input)];
    const bool is_gradient =
        value.persistent_index < 0 ||
        program.persistent[static_cast<size_t>(value.persistent_index)].purpose ==
            Purpose::kGradients;
    if (is_gradient && value.type.elements() == type.elements()) return input;
  }
  return -1;
}

// Those that the node reads to update parameters, one each.
std::vector<int> GradientsOf(const Program& program, const StepPlan& step,
                             const PlannedNode& node) {
  const int parameter = UpdatedBy(program, step, node);
  if (parameter < 0) return {};
  if (!node.op.ends_with("_group")) {
    const int gradient = GradientOf(program, step, node, parameter);
    return gradient < 0 ? std::vector<int>() : std::vector<int>{gradient};
  }
  std::vector<int> gradients;
  const UpdateGroup& group = GroupOf(*node.def);
  for (size_t at = 0; at < group.CountOf(node.call); ++at)
    gradients.push_back(node.inputs[group.OwnInput(at, kGradientOfUpdate)]);
  return gradients;
}

// The step that makes the gradients, and what follows each of its nodes.
class Backward {
 public:
  Backward(const Program& program, const StepPlan& step) : step_(&step), uses_(step) {
    const std::vector<double> seconds = PlannedNodeSeconds(step);
    behind_s_.assign(step.nodes.size() + 1, 0);
    for (size_t n = step.nodes.size(); n-- > 0;) {
      const bool waits = IsTreeNode(step.nodes[n]) || UpdatedBy(program, step, step.nodes[n]) >= 0;
      behind_s_[n] = behind_s_[n + 1] + (waits ? 0 : seconds[n]);
    }
  }

  // Of the nodes behind the last one that writes the value.
  double SecondsBehind(int value) const {
    return behind_s_[static_cast<size_t>(uses_.LastWriteTo(value) + 1)];
  }
  // Of the nodes behind the last one that writes the variable.
  double SecondsBehindVariable(int variable) const {
    int last = -1;
    for (size_t v = 0; v < step_->values.size(); ++v) {
      if (step_->values[v].persistent_index != variable) continue;
      const int producer = uses_.ProducerOf(static_cast<int>(v));
      if (producer >= 0 && !IsTreeNode(step_->nodes[static_cast<size_t>(producer)]))
        last = std::max(last, producer);
    }
    return behind_s_[static_cast<size_t>(last + 1)];
  }

 private:
  const StepPlan* step_;
  StepUses uses_;
  std::vector<double> behind_s_;  // by node: its own and those of all behind it
};

}  // namespace

std::vector<GradientReady> GradientTimes(const Program& program, int64_t accumulate) {
  std::vector<GradientReady> gradients;
  const std::vector<UpdatePart> parts = UpdateParts(program, accumulate);
  if (parts.empty()) return gradients;
  const double update_s = UpdateSeconds(program, accumulate);
  const Backward backward(program, *parts.front().step);
  const StepPlan& step = *parts.back().step;
  for (const PlannedNode& node : step.nodes) {
    for (const int gradient : GradientsOf(program, step, node)) {
      const PlannedValue& value = step.values[static_cast<size_t>(gradient)];
      const double behind_s = value.persistent_index >= 0
                                  ? backward.SecondsBehindVariable(value.persistent_index)
                                  : backward.SecondsBehind(gradient);
      gradients.push_back({update_s > 0 ? behind_s / update_s : 0, value.type.bytes()});
    }
  }
  std::stable_sort(gradients.begin(), gradients.end(),
                   [](const auto& a, const auto& b) { return a.ahead > b.ahead; });
  return gradients;
}

}  // namespace ridge
