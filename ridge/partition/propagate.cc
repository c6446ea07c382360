#include "ridge/partition/propagate.h"

#include <algorithm>

#include "ridge/partition/letters.h"

namespace ridge {
namespace {

struct Claim {
  LetterCut cut;
  bool by_weight = false;
};

class Propagation {
 public:
  Propagation(const Graph& graph, const Layout& layout, const Mesh& mesh)
      : graph_(graph), mesh_(mesh), weight_(FindWeights(graph)) {
    const size_t count = graph.values().size();
    proposal_.splits.resize(count);
    fixed_.resize(count, false);
    for (size_t v = 0; v < count; ++v) {
      const auto id = static_cast<ValueId>(v);
      const ValueKind kind = graph.value(id).kind;
      const auto given = layout.use.find(id);
      if (given != layout.use.end()) proposal_.splits[v] = given->second;
      fixed_[v] = given != layout.use.end() || kind == ValueKind::kParameter ||
                  kind == ValueKind::kConstant;
    }
    letters_.reserve(graph.nodes().size());
    for (const Node& node : graph.nodes()) letters_.emplace_back(*node.op, graph.Call(node), mesh);
  }

  Proposal Run() {
    const size_t count = graph_.nodes().size();
    for (bool changed = true; changed; ++proposal_.rounds) {
      changed = false;
      for (size_t n = 0; n < count; ++n) changed = Visit(n) || changed;
      for (size_t n = count; n-- > 0;) changed = Visit(n) || changed;
    }
    return std::move(proposal_);
  }

 private:
  Split& SplitAt(const Node& node, Slot slot) {
    return proposal_.splits[static_cast<size_t>(ValueAt(node, slot))];
  }

  std::vector<Claim> ClaimsOf(const Node& node, const Letters& letters) {
    std::vector<Claim> claims;
    for (Slot slot : letters.slots()) {
      const bool by_weight = !slot.is_output && weight_[static_cast<size_t>(ValueAt(node, slot))];
      for (const Cut& cut : SplitAt(node, slot).cuts) {
        if (const std::optional<LetterCut> found = letters.Find(slot, cut))
          claims.push_back({*found, by_weight});
      }
    }
    return claims;
  }

  // Whether nothing else at this node wants the axis, or a weight decides.
  static bool Holds(const std::vector<Claim>& claims, const LetterCut& cut) {
    bool by_weight = false, others = false;
    for (const Claim& claim : claims) {
      if (claim.cut.axis != cut.axis) continue;
      if (claim.cut.letter == cut.letter && claim.cut.blocks != cut.blocks) return false;
      by_weight = by_weight || (claim.cut.letter == cut.letter && claim.by_weight);
      others = others || claim.cut.letter != cut.letter;
    }
    return by_weight || !others;
  }

  bool Visit(size_t n) {
    const Node& node = graph_.nodes()[n];
    const Letters& letters = letters_[n];
    bool changed = false;
    const std::vector<Claim> claims = ClaimsOf(node, letters);
    for (const Claim& claim : claims) {
      if (!Holds(claims, claim.cut)) continue;
      for (Slot slot : letters.slots())
        changed = Propose(node, letters, slot, claim.cut) || changed;
    }
    return changed;
  }

  bool Propose(const Node& node, const Letters& letters, Slot slot, const LetterCut& cut) {
    if (fixed_[static_cast<size_t>(ValueAt(node, slot))]) return false;
    const std::optional<Cut> own = letters.CutOf(slot, cut);
    Split& split = SplitAt(node, slot);
    if (!own || !CanCut(letters.DimsOf(slot), split, *own, mesh_)) return false;
    split.Add(*own);
    return true;
  }

  const Graph& graph_;
  const Mesh& mesh_;
  const std::vector<bool> weight_;
  std::vector<Letters> letters_;  // by node
  std::vector<bool> fixed_;       // by value
  Proposal proposal_;
};

}  // namespace

std::vector<bool> FindWeights(const Graph& graph) {
  std::vector<bool> weight(graph.values().size(), false);
  for (size_t v = 0; v < weight.size(); ++v) {
    const ValueKind kind = graph.values()[v].kind;
    weight[v] = kind == ValueKind::kParameter || kind == ValueKind::kState;
  }
  for (const Node& node : graph.nodes()) {
    const bool view = node.inputs.size() == 1 && node.op->linear == Linear::kJointly &&
                      node.op->cost_class != CostClass::kReduce && node.op->name != "expand";
    if (view)
      weight[static_cast<size_t>(node.outputs[0])] = weight[static_cast<size_t>(node.inputs[0])];
  }
  return weight;
}

Proposal Propagate(const Graph& graph, const Layout& layout, const Mesh& mesh) {
  return Propagation(graph, layout, mesh).Run();
}

}  // namespace ridge
