// Collects the picked candidates and the values that their recomputation needs.
//
// Known weakness: only nodes after the graph's first peak read recomputed values.  Of two equally
// high peaks (a wide first layer) only the first one falls.
#include "ridge/plan/search/recompute.h"

#include <algorithm>

#include "ridge/plan/search/recompute_facts.h"
#include "ridge/plan/search/recompute_pick.h"

namespace ridge {
namespace {

bool HasGradients(const Graph& graph) {
  return std::any_of(graph.values().begin(), graph.values().end(), [](const ValueInfo& value) {
    return value.kind == ValueKind::kResult && value.role == ValueRole::kGradient;
  });
}

class SetBuilder {
 public:
  SetBuilder(const Graph& graph, const RecomputeFacts& facts,
             std::vector<const RematCandidate*> taken)
      : graph_(graph), facts_(facts), taken_(std::move(taken)) {
    set_.late_readers = facts.late_nodes();
    set_.values.assign(graph.values().size(), false);
  }

  RecomputeSet Run() {
    for (size_t v = 0; v < set_.values.size(); ++v) {
      const auto id = static_cast<ValueId>(v);
      if (const RematCandidate* candidate = TakenOf(id)) Mark(id, *candidate);
    }
    return std::move(set_);
  }

 private:
  const RematCandidate* TakenOf(ValueId id) const {
    return taken_[static_cast<size_t>(facts_.RootOf(id))];
  }

  // Adds `id`, views of recomputed values, and the inputs to recompute.
  void Mark(ValueId id, const RematCandidate& candidate) {
    if (set_.values[static_cast<size_t>(id)]) return;
    set_.values[static_cast<size_t>(id)] = true;
    for (ValueId input : RematInputs(graph_, id)) {
      if (input == kNoValue) continue;
      if (const RematCandidate* taken = TakenOf(input)) {
        Mark(input, *taken);
      } else if (facts_.IsRecomputedFor(candidate, input)) {
        Mark(input, candidate);
      }
    }
  }

  const Graph& graph_;
  const RecomputeFacts& facts_;
  const std::vector<const RematCandidate*> taken_;  // by root; nullptr: kept
  RecomputeSet set_;
};

}  // namespace

RecomputeSet FindRecomputable(const Graph& graph, const RecomputeLimits& limits,
                              const CostModel& nominal) {
  if (!limits.any || !HasGradients(graph)) return {};
  const RecomputeFacts facts(graph, nominal);
  const std::vector<RematCandidate> candidates = facts.Candidates(limits.expensive);
  const std::vector<bool> picked = limits.every ? std::vector<bool>(candidates.size(), true)
                                                : PickRecomputed(facts, candidates, limits);
  std::vector<const RematCandidate*> taken(graph.values().size(), nullptr);
  for (size_t c = 0; c < candidates.size(); ++c) {
    if (picked[c]) taken[static_cast<size_t>(candidates[c].value)] = &candidates[c];
  }
  RecomputeSet set = SetBuilder(graph, facts, std::move(taken)).Run();
  set.chosen = std::count(picked.begin(), picked.end(), true);
  return set;
}

}  // namespace ridge
