// From the summed dimension of a product with a weight the cut is followed upwards, from results to
// operands by the letters of the nodes.  If every way ends at products whose weights have the
// letter, these are the columns of a pair; if one ends elsewhere, the features are not independent.
#include "ridge/partition/tensor_pairs.h"

#include <algorithm>

#include "ridge/partition/letters.h"

namespace ridge {
namespace {

class PairFinder {
 public:
  PairFinder(const Graph& graph, const Mesh& mesh, int axis)
      : graph_(graph), mesh_(mesh), axis_(axis), weight_(FindWeights(graph)) {}

  TensorPairs Run() {
    for (const Node& node : graph_.nodes()) {
      if (IsProduct(node)) TryRow(node);
    }
    return std::move(found_);
  }

 private:
  struct Open {
    ValueId value;
    Cut cut;
  };

  // With a weight as one operand.
  bool IsProduct(const Node& node) const {
    return node.op->cost_class == CostClass::kMatmul && node.inputs.size() == 2 &&
           weight_[static_cast<size_t>(node.inputs[1])] &&
           !weight_[static_cast<size_t>(node.inputs[0])];
  }

  void TryRow(const Node& node) {
    const Letters letters(*node.op, graph_.Call(node), mesh_);
    for (size_t f = 0; f < letters.factors().size(); ++f) {
      if (letters.factors()[f].over != Factor::Over::kSum) continue;
      const LetterCut cut{f, axis_, 1};
      const std::optional<Cut> of_weight = letters.CutOf({false, 1}, cut);
      const std::optional<Cut> of_rows = letters.CutOf({false, 0}, cut);
      if (!letters.Allows(cut) || !of_weight || !of_rows) continue;
      TensorPair pair;
      pair.result = node.outputs[0];
      std::map<ValueId, Split> weights = found_.weights;
      if (!Parameter(node.inputs[1], *of_weight, weights, &pair.row)) continue;
      if (found_.weights.contains(pair.row)) continue;
      if (!Follow({node.inputs[0], *of_rows}, weights, pair)) continue;
      found_.weights = std::move(weights);
      found_.pairs.push_back(std::move(pair));
    }
  }

  // Of a weight, through its casts and views: the cut of the parameter.
  bool Parameter(ValueId id, Cut cut, std::map<ValueId, Split>& weights, ValueId* parameter) const {
    while (const Node* node = graph_.producer(id)) {
      const Letters letters(*node->op, graph_.Call(*node), mesh_);
      const std::optional<LetterCut> letter = letters.Find({true, 0}, cut);
      const std::optional<Cut> before =
          letter ? letters.CutOf({false, 0}, *letter) : std::optional<Cut>();
      if (!before) return false;
      cut = *before;
      id = node->inputs[0];
    }
    if (graph_.value(id).kind != ValueKind::kParameter) return false;
    if (parameter != nullptr) *parameter = id;
    const auto [at, is_new] = weights.try_emplace(id);
    if (is_new) at->second.Add(cut);
    return at->second.cuts == std::vector<Cut>{cut};
  }

  bool Follow(Open start, std::map<ValueId, Split>& weights, TensorPair& pair) const {
    std::map<ValueId, Cut> seen;
    std::vector<Open> open = {start};
    bool any = false;
    while (!open.empty()) {
      const Open now = open.back();
      open.pop_back();
      const auto [known, is_new] = seen.try_emplace(now.value, now.cut);
      if (!is_new && known->second != now.cut) return false;
      if (!is_new || graph_.value(now.value).kind == ValueKind::kConstant) continue;
      if (weight_[static_cast<size_t>(now.value)]) {
        if (!Column(now, weights, pair)) return false;
        continue;
      }
      const Node* node = graph_.producer(now.value);
      if (node == nullptr || !Above(*node, now, open, weights, pair, any)) return false;
    }
    return any;
  }

  bool Column(const Open& now, std::map<ValueId, Split>& weights, TensorPair& pair) const {
    ValueId parameter = kNoValue;
    if (!Parameter(now.value, now.cut, weights, &parameter)) return false;
    pair.columns.push_back(parameter);
    return true;
  }

  bool Above(const Node& node, const Open& now, std::vector<Open>& open,
             std::map<ValueId, Split>& weights, TensorPair& pair, bool& any) const {
    const Letters letters(*node.op, graph_.Call(node), mesh_);
    const auto k = static_cast<size_t>(graph_.value(now.value).output_index);
    const std::optional<LetterCut> letter = letters.Find({true, k}, now.cut);
    if (!letter) return false;
    if (IsProduct(node)) {
      const std::optional<Cut> of_weight = letters.CutOf({false, 1}, *letter);
      if (!of_weight || letters.CutOf({false, 0}, *letter)) return false;
      any = true;
      return Column({node.inputs[1], *of_weight}, weights, pair);
    }
    for (Slot slot : letters.slots()) {
      if (slot.is_output) continue;
      if (const std::optional<Cut> cut = letters.CutOf(slot, *letter))
        open.push_back({node.inputs[slot.index], *cut});
    }
    return true;
  }

  const Graph& graph_;
  const Mesh& mesh_;
  const int axis_;
  const std::vector<bool> weight_;
  TensorPairs found_;
};

}  // namespace

TensorPairs FindTensorPairs(const Graph& graph, const Mesh& mesh, int axis) {
  return PairFinder(graph, mesh, axis).Run();
}

}  // namespace ridge
