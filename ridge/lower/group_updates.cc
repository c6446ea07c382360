#include "ridge/lower/group_updates.h"

#include <algorithm>
#include <vector>

#include "ridge/graph/ops/shared/update_group.h"
#include "ridge/graph/passes/rewriter.h"

namespace ridge {
namespace {

constexpr int64_t kMostElements = int64_t{64} << 10;
constexpr int kLeastRankOfLayouts = 3;

struct Group {
  const UpdateGroup* form = nullptr;
  std::vector<const Node*> updates;  // in the graph's order
  bool is_open = true;               // further ones may join it

  bool Joins() const { return updates.size() > 1; }
};

class UpdateGrouper {
 public:
  UpdateGrouper(const Graph& graph, const RewriteRules& rules)
      : graph_(graph), rules_(rules), group_of_(graph.nodes().size(), kNone), rewriter_(graph) {
    for (const Node& node : graph.nodes()) {
      CloseWhatItReads(node);
      Place(node);
    }
  }

  bool Any() const {
    return std::any_of(groups_.begin(), groups_.end(), [](const Group& g) { return g.Joins(); });
  }

  Result<Graph> Run() {
    RIDGE_RETURN_IF_ERROR(rewriter_.Walk([this](const Node& node) { return Visit(node); }));
    return rewriter_.Finish();
  }

 private:
  static constexpr int kNone = -1;

  int& GroupAt(const Node& node) { return group_of_[static_cast<size_t>(graph_.IdOf(node))]; }

  // A reader of a result stays behind the group: what comes later is none of its updates.
  void CloseWhatItReads(const Node& node) {
    for (const ValueId id : node.inputs) {
      const Node* producer = graph_.producer(id);
      const int group = producer == nullptr ? kNone : GroupAt(*producer);
      if (group != kNone) groups_[static_cast<size_t>(group)].is_open = false;
    }
  }

  void Place(const Node& node) {
    if (node.op->cost_class != CostClass::kOptimizer) return;
    const OpCall call = graph_.Call(node);
    const UpdateGroup* form = GroupFor(*node.op, call);
    if (form == nullptr || !rules_.GroupsUpdate(call)) return;
    const auto fits = [&](const Group& group) {
      return group.is_open && group.form == form && group.updates.size() < kMostUpdates &&
             IsAlike(*form, *group.updates[0], node);
    };
    auto found = std::find_if(groups_.begin(), groups_.end(), fits);
    if (found == groups_.end()) found = groups_.insert(found, Group{form, {}});
    found->updates.push_back(&node);
    GroupAt(node) = static_cast<int>(found - groups_.begin());
  }

  static bool IsAlike(const UpdateGroup& form, const Node& a, const Node& b) {
    return SameAttrs(a.attrs, b.attrs) &&
           std::all_of(form.shared.begin(), form.shared.end(),
                       [&](size_t i) { return InputAt(a, i) == InputAt(b, i); });
  }

  static ValueId InputAt(const Node& node, size_t i) {
    return i < node.inputs.size() ? node.inputs[i] : kNoValue;
  }

  Status Visit(const Node& node) {
    const int at = GroupAt(node);
    if (at == kNone) return rewriter_.Copy(node);
    const Group& group = groups_[static_cast<size_t>(at)];
    if (!group.Joins()) return rewriter_.Copy(node);
    return &node == group.updates.back() ? Emit(group) : Status();
  }

  Status Emit(const Group& group) {
    const Node& first = *group.updates[0];
    std::vector<ValueId> inputs, results;
    for (const size_t i : group.form->shared) inputs.push_back(rewriter_.Use(InputAt(first, i)));
    for (const Node* update : group.updates) {
      for (const size_t i : group.form->own) inputs.push_back(rewriter_.Use(update->inputs[i]));
      results.insert(results.end(), update->outputs.begin(), update->outputs.end());
    }
    AttrMap attrs = first.attrs;
    attrs.erase("stream");  // of roundings, which these have not
    return rewriter_.Emit(*FindOp(group.form->name), std::move(inputs), std::move(attrs), results,
                          first.location);
  }

  const Graph& graph_;
  const RewriteRules& rules_;
  std::vector<Group> groups_;
  std::vector<int> group_of_;  // by node
  GraphRewriter rewriter_;
};

}  // namespace

Result<Graph> GroupUpdates(Graph graph, const RewriteRules& rules) {
  UpdateGrouper grouper(graph, rules);
  if (!grouper.Any()) return graph;
  return grouper.Run();
}

bool IsSmallUpdate(const OpCall& update) {
  const TensorType& param = update.inputs[0];
  return param.dtype == DType::kF32 && param.rank() < kLeastRankOfLayouts &&
         param.elements() <= kMostElements;
}

}  // namespace ridge
