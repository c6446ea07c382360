#include "ridge/partition/update_path.h"

#include <algorithm>

namespace ridge {
namespace {

bool IsPointwise(const OpDef& op) {
  return op.elementwise != nullptr || op.cost_class == CostClass::kOptimizer || op.name == "cast";
}

class Walk {
 public:
  Walk(const Graph& graph, const std::vector<Split>& stored)
      : graph_(graph), stored_(stored), from_variable_(graph.values().size(), false) {
    path_.has.resize(graph.nodes().size(), false);
    path_.nodes.resize(graph.nodes().size());
    path_.gradients.resize(graph.values().size());
    for (size_t v = 0; v < graph.values().size(); ++v) {
      const ValueKind kind = graph.values()[v].kind;
      from_variable_[v] = kind == ValueKind::kParameter || kind == ValueKind::kState;
    }
    for (const Node& node : graph.nodes()) Mark(node);
  }

  UpdatePath Run() {
    for (const GraphUpdate& update : graph_.updates()) {
      Follow(update.value, stored_[static_cast<size_t>(update.variable)].cuts);
    }
    return std::move(path_);
  }

 private:
  bool FromVariable(ValueId id) const { return from_variable_[static_cast<size_t>(id)]; }

  // The pointwise results of the variables' shape that read one.
  void Mark(const Node& node) {
    if (!IsPointwise(*node.op)) return;
    const Dims& dims = graph_.type(node.outputs[0]).dims;
    const bool reads = std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
      return id != kNoValue && FromVariable(id) && !dims.empty() && graph_.type(id).dims == dims;
    });
    for (ValueId id : node.outputs) from_variable_[static_cast<size_t>(id)] = reads;
  }

  static bool Insert(std::vector<Cut>& to, const std::vector<Cut>& cuts) {
    const size_t before = to.size();
    for (const Cut& cut : cuts)
      if (std::find(to.begin(), to.end(), cut) == to.end()) to.push_back(cut);
    return to.size() != before;
  }

  void Follow(ValueId root, const std::vector<Cut>& cuts) {
    std::vector<ValueId> open = {root};
    while (!open.empty()) {
      const ValueId id = open.back();
      open.pop_back();
      const Node* node = graph_.producer(id);
      if (node == nullptr) continue;
      const auto n = static_cast<size_t>(graph_.IdOf(*node));
      if (!FromVariable(id)) {
        FollowGradient(id, cuts);
        continue;
      }
      const bool more = Insert(path_.nodes[n], cuts);
      if (path_.has[n] && !more) continue;
      path_.has[n] = true;
      const Dims& dims = graph_.type(id).dims;
      for (ValueId input : node->inputs)
        if (input != kNoValue && graph_.type(input).dims == dims) open.push_back(input);
    }
  }

  // Through factors and casts to what the gradient is before them.
  void FollowGradient(ValueId id, const std::vector<Cut>& cuts) {
    while (Insert(path_.gradients[static_cast<size_t>(id)], cuts)) {
      const Node* node = graph_.producer(id);
      if (node == nullptr || !IsPointwise(*node->op)) return;
      const Dims& dims = graph_.type(id).dims;
      std::vector<ValueId> same;
      for (ValueId input : node->inputs)
        if (input != kNoValue && graph_.type(input).dims == dims) same.push_back(input);
      if (same.size() != 1 || graph_.producer(same[0]) == nullptr) return;
      id = same[0];
    }
  }

  const Graph& graph_;
  const std::vector<Split>& stored_;
  std::vector<bool> from_variable_;
  UpdatePath path_;
};

}  // namespace

UpdatePath FindUpdatePath(const Graph& graph, const std::vector<Split>& stored) {
  return Walk(graph, stored).Run();
}

}  // namespace ridge
