// Every value that lives over the peak and is read before and after it is a candidate.  To make it
// again takes its inputs: those that later nodes read as well are there, cheap ones are made again
// too, and any other has to be kept for it.  A candidate that needs more kept than it frees is
// dropped, and what was made from it is looked at again, until nothing changes.
//
// A chain (the results of a stage's residual blocks, each the sum of a normalized convolution and
// the result before) needs no rule of its own: each is made from the copy of the one before.
//
// Known weakness: one peak is looked at.  Where two are as high (a wide first layer), only the
// first falls.
#include "ridge/plan/memory/recompute.h"

#include <algorithm>

#include "ridge/plan/schedule.h"

namespace ridge {
namespace {

constexpr int kMostSteps = 8;  // made again for one value
// Of the bytes at the peak, that a value must free to be worth its nodes.
constexpr int64_t kLeastShare = 2000;

class Finder {
 public:
  explicit Finder(const Graph& graph)
      : graph_(graph),
        first_(graph.values().size(), -1),
        last_(graph.values().size(), -1),
        read_late_(graph.values().size(), false),
        may_(graph.values().size(), false) {}

  RecomputeSet Run() {
    MeasureLives();
    FindPeak();
    MarkReaders();
    RecomputeSet set;
    set.late_readers = late_;
    for (size_t v = 0; v < may_.size(); ++v) may_[v] = IsCandidate(static_cast<ValueId>(v));
    DropUnworthy();
    set.values.assign(may_.size(), false);
    for (size_t v = 0; v < may_.size(); ++v) {
      const auto id = static_cast<ValueId>(v);
      if (may_[static_cast<size_t>(RootOf(id))]) Mark(id, set.values);
    }
    return set;
  }

 private:
  // The value whose bytes these are.
  ValueId RootOf(ValueId id) const {
    while (graph_.value(id).kind == ValueKind::kResult) {
      const Node& node = graph_.node(graph_.value(id).producer);
      if (node.op->alias_input < 0) return id;
      id = node.inputs[static_cast<size_t>(node.op->alias_input)];
    }
    return id;
  }

  bool IsScratch(ValueId root) const { return graph_.value(root).kind == ValueKind::kResult; }

  void MeasureLives() {
    order_ = ScheduleNodes(graph_);
    for (size_t at = 0; at < order_.size(); ++at) {
      const Node& node = graph_.node(order_[at]);
      const auto touch = [&](ValueId id) {
        if (id == kNoValue) return;
        const auto root = static_cast<size_t>(RootOf(id));
        if (first_[root] < 0) first_[root] = static_cast<int>(at);
        last_[root] = static_cast<int>(at);
      };
      for (ValueId id : node.inputs) touch(id);
      for (ValueId id : node.outputs) touch(id);
    }
    const int end = static_cast<int>(order_.size());
    const auto keep = [&](ValueId id) { last_[static_cast<size_t>(RootOf(id))] = end; };
    for (const GraphOutput& output : graph_.outputs()) keep(output.value);
    for (const GraphUpdate& update : graph_.updates()) keep(update.value);
  }

  void FindPeak() {
    std::vector<int64_t> change(order_.size() + 2, 0);
    for (size_t v = 0; v < first_.size(); ++v) {
      if (first_[v] < 0 || !IsScratch(static_cast<ValueId>(v))) continue;
      change[static_cast<size_t>(first_[v])] += Bytes(static_cast<ValueId>(v));
      change[static_cast<size_t>(last_[v]) + 1] -= Bytes(static_cast<ValueId>(v));
    }
    int64_t live = 0;
    for (size_t at = 0; at < order_.size(); ++at) {
      live += change[at];
      if (live <= peak_bytes_) continue;
      peak_bytes_ = live;
      peak_ = static_cast<int>(at);
    }
  }

  void MarkReaders() {
    late_.assign(order_.size(), false);
    for (size_t at = 0; at < order_.size(); ++at) {
      if (static_cast<int>(at) <= peak_) continue;
      const Node& node = graph_.node(order_[at]);
      late_[static_cast<size_t>(order_[at])] = true;
      for (ValueId id : node.inputs) {
        if (id != kNoValue) read_late_[static_cast<size_t>(RootOf(id))] = true;
      }
    }
  }

  int64_t Bytes(ValueId id) const { return graph_.type(id).bytes(); }

  bool IsCandidate(ValueId id) const {
    const auto v = static_cast<size_t>(id);
    return IsCheapAgain(graph_, id) && RootOf(id) == id && read_late_[v] && first_[v] < peak_ &&
           last_[v] < static_cast<int>(order_.size()) && Bytes(id) >= peak_bytes_ / kLeastShare &&
           graph_.value(id).role != ValueRole::kGradient;
  }

  void DropUnworthy() {
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t v = 0; v < may_.size(); ++v) {
        if (!may_[v]) continue;
        Needs needs;
        AddNeeds(static_cast<ValueId>(v), needs);
        if (needs.steps <= kMostSteps && needs.bytes < Bytes(static_cast<ValueId>(v))) continue;
        may_[v] = false;
        changed = true;
      }
    }
  }

  struct Needs {
    int steps = 0;
    int64_t bytes = 0;  // of values that would be kept for it
  };

  // What it takes to make `id` again.
  void AddNeeds(ValueId id, Needs& needs) const {
    if (++needs.steps > kMostSteps) return;
    for (ValueId input : InputsAgain(graph_, id)) {
      if (input == kNoValue || IsThere(input)) continue;
      if (IsCheapAgain(graph_, input)) {
        AddNeeds(input, needs);
      } else {
        needs.bytes += Bytes(input);
      }
    }
  }

  // At the time of the copies: kept for others, or with a copy of its own.
  bool IsThere(ValueId id) const {
    const auto root = static_cast<size_t>(RootOf(id));
    return !IsScratch(static_cast<ValueId>(root)) || read_late_[root] ||
           last_[root] == static_cast<int>(order_.size());
  }

  // `id`, the views of what has a copy, and what is made again on the way.
  void Mark(ValueId id, std::vector<bool>& values) const {
    if (values[static_cast<size_t>(id)]) return;
    values[static_cast<size_t>(id)] = true;
    for (ValueId input : InputsAgain(graph_, id)) {
      if (input == kNoValue) continue;
      const auto root = static_cast<size_t>(RootOf(input));
      const bool copied = may_[root] || !IsThere(input);
      if (copied && IsCheapAgain(graph_, input)) Mark(input, values);
    }
  }

  const Graph& graph_;
  std::vector<NodeId> order_;
  std::vector<int> first_, last_;  // by root value, into order_; last_ is its size for results
  std::vector<bool> read_late_;    // by root value: behind the peak
  std::vector<bool> late_;         // by node: behind the peak
  std::vector<bool> may_;          // by value
  int peak_ = 0;
  int64_t peak_bytes_ = 0;
};

bool HasGradients(const Graph& graph) {
  return std::any_of(graph.values().begin(), graph.values().end(), [](const ValueInfo& value) {
    return value.kind == ValueKind::kResult && value.role == ValueRole::kGradient;
  });
}

}  // namespace

RecomputeSet FindRecomputable(const Graph& graph) {
  if (!HasGradients(graph)) return {};
  return Finder(graph).Run();
}

}  // namespace ridge
