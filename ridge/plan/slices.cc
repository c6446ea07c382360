#include "ridge/plan/slices.h"

#include <algorithm>

#include "ridge/plan/uses.h"

namespace ridge {
namespace {

const PlannedValue& ValueAt(const StepPlan& step, int value) {
  return step.values[static_cast<size_t>(value)];
}

// The input of the node that is added to the state `sum`, or of a tree copied into it; -1 when the
// node does something else.
int AddendOf(const StepPlan& step, const PlannedNode& node, int sum) {
  if (ValueAt(step, node.outputs[0]).persistent_index != sum) return -1;
  if (node.def == nullptr && step.tree && node.choice.kernel == "copy") return node.inputs[0];
  if (node.def == nullptr || node.def->name != "add") return -1;
  for (size_t i = 0; i < 2; ++i) {
    const int state = node.inputs[i], addend = node.inputs[1 - i];
    const PlannedValue &old = ValueAt(step, state), &x = ValueAt(step, addend);
    if (old.persistent_index != sum || old.shares_with >= 0 || addend == state) continue;
    return x.type == old.type && x.layout == old.layout ? addend : -1;
  }
  return -1;
}

class FirstSlice {
 public:
  FirstSlice(const StepPlan& step, Region& loop) : step_(step), loop_(loop), uses_(step) {}

  void Write(int sum) {
    for (int n = loop_.first; n < loop_.end; ++n) {
      const int addend = AddendOf(step_, step_.nodes[static_cast<size_t>(n)], sum);
      if (addend < 0) continue;
      const int root = uses_.bytes().RootOf(addend);
      const PlannedValue& bytes = ValueAt(step_, root);
      // What a later node writes into the bytes would be in the sum at the slice's end.
      const bool rewritten = uses_.LastWriteTo(addend) >= n;
      if (bytes.persistent || loop_.peeled.written_in.contains(root) ||
          bytes.size_bytes > ValueAt(step_, addend).size_bytes || rewritten)
        return;
      // The sum's place is another one in the next slice.
      if (loop_.in_step && (uses_.bytes().IsShared(addend) || uses_.ReadsOf(addend).size() > 1))
        return;
      for (const int v : uses_.bytes().SharersOf(addend)) loop_.peeled.written_in[v] = sum;
      loop_.peeled.skipped.push_back(n);
      return;
    }
  }

 private:
  const StepPlan& step_;
  Region& loop_;
  const StepUses uses_;
};

}  // namespace

SlicePhases FindSlicePhases(const NamedGraph& named) {
  const Graph& graph = named.graph;
  SlicePhases phases;
  phases.sum_.assign(graph.values().size(), false);
  phases.total_ = phases.last_ = phases.sum_;
  if (!named.in_slices()) return phases;
  for (const std::string& name : named.accumulators) {
    if (const ValueId id = graph.FindValue(name); id != kNoValue)
      phases.sum_[static_cast<size_t>(id)] = true;
  }
  for (const GraphUpdate& update : graph.updates()) {
    if (!named.share && phases.IsSum(update.variable))
      phases.total_[static_cast<size_t>(update.value)] = true;
  }
  for (const Node& node : graph.nodes()) {
    const auto any = [](const std::vector<ValueId>& ids, const auto& test) {
      return std::any_of(ids.begin(), ids.end(), [&](ValueId id) {
        return id != kNoValue && test(static_cast<size_t>(id));
      });
    };
    const bool adds = any(node.outputs, [&](size_t id) { return phases.total_[id]; });
    const bool follows = any(node.inputs, [&](size_t id) {
      return phases.last_[id] || phases.total_[id] || (!adds && phases.sum_[id]);
    });
    RIDGE_CHECK(!adds || !follows, "a sum over slices adds what follows from one");
    for (ValueId id : node.outputs) phases.last_[static_cast<size_t>(id)] = follows;
  }
  for (const GraphUpdate& update : graph.updates()) {
    RIDGE_CHECK(!phases.IsSum(update.variable) || !phases.last_[static_cast<size_t>(update.value)],
                "a sum over slices adds what follows from one");
  }
  return phases;
}

void PeelFirstSlice(StepPlan& step) {
  Region* loop = MicroBatchLoop(step);
  if (loop == nullptr) return;
  loop->peeled.every = step.tree.has_value();
  FirstSlice first(step, *loop);
  for (int sum : step.sums) first.Write(sum);
  std::sort(loop->peeled.skipped.begin(), loop->peeled.skipped.end());
}

}  // namespace ridge
