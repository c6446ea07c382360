// In-place results form chains as long as the plan, so each chain is walked once: every value on it
// then knows its end.
#include "ridge/plan/uses.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace ridge {
namespace {

// Sets ends[v], from `first` on, to the first value from v along shares_with that shares with none
// or that `stops`; those that are known are >= 0.  A value may share with one of a higher index:
// copies in other layouts are added last.
template <typename Stops>
void FollowShares(const StepPlan& step, const Stops& stops, size_t first, std::vector<int>& ends) {
  std::vector<int> chain;
  for (size_t v = first; v < ends.size(); ++v) {
    auto at = v;
    for (chain.clear(); ends[at] < 0;) {
      chain.push_back(static_cast<int>(at));
      const int from = step.values[at].shares_with;
      if (from < 0 || stops(at)) {
        ends[at] = static_cast<int>(at);
      } else {
        at = static_cast<size_t>(from);
      }
    }
    for (const int value : chain) ends[static_cast<size_t>(value)] = ends[at];
  }
}

}  // namespace

void SharedBytes::Extend(const StepPlan& step) {
  const size_t known = root_.size();
  root_.resize(step.values.size(), -1);
  next_.resize(step.values.size());
  std::iota(next_.begin() + static_cast<std::ptrdiff_t>(known), next_.end(),
            static_cast<int>(known));
  const auto never = [](size_t) { return false; };
  FollowShares(step, never, known, root_);
  for (size_t v = known; v < root_.size(); ++v) {
    const auto root = static_cast<size_t>(root_[v]);
    if (root != v) std::swap(next_[v], next_[root]);
  }
}

void SharedBytes::Share(int value, int with) {
  const int root = RootOf(with);
  for (const int sharer : SharersOf(value)) root_[static_cast<size_t>(sharer)] = root;
  std::swap(next_[static_cast<size_t>(value)], next_[static_cast<size_t>(root)]);
}

std::vector<int> SharedBytes::SharersOf(int value) const {
  std::vector<int> sharers = {value};
  for (int v = next_[static_cast<size_t>(value)]; v != value; v = next_[static_cast<size_t>(v)])
    sharers.push_back(v);
  return sharers;
}

void StepUses::Extend(const StepPlan& step) {
  bytes_.Extend(step);
  producer_.resize(step.values.size(), -1);
  reads_.resize(step.values.size());
  for (; nodes_ < step.nodes.size(); ++nodes_) {
    const PlannedNode& node = step.nodes[nodes_];
    const int n = static_cast<int>(nodes_);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] >= 0)
        reads_[static_cast<size_t>(node.inputs[i])].push_back({n, static_cast<int>(i)});
    }
    for (const int output : node.outputs) producer_[static_cast<size_t>(output)] = n;
  }
}

int StepUses::LastWriteTo(int value) const {
  int last = -1;
  for (const int sharer : bytes_.SharersOf(value)) last = std::max(last, ProducerOf(sharer));
  return last;
}

std::vector<int> ShownValues(const StepPlan& step, const StepUses& uses) {
  std::vector<int> shown(step.values.size(), -1);
  const auto written = [&](size_t v) { return uses.ProducerOf(static_cast<int>(v)) >= 0; };
  FollowShares(step, written, /*first=*/0, shown);
  return shown;
}

VariableUses::VariableUses(const StepPlan& step, const StepUses& uses, size_t persistent)
    : before_(persistent, -1), writes_(persistent, 0) {
  for (int v = 0; v < static_cast<int>(step.values.size()); ++v) {
    const PlannedValue& value = step.values[static_cast<size_t>(v)];
    if (!value.persistent || value.persistent_index < 0) continue;
    const auto variable = static_cast<size_t>(value.persistent_index);
    if (uses.ProducerOf(v) >= 0) {
      ++writes_[variable];
      any_writes_ = true;
    } else if (value.shares_with < 0 && before_[variable] < 0) {
      before_[variable] = v;
    }
  }
}

std::vector<LiveRange> LiveRanges(const StepPlan& step, const SharedBytes& bytes) {
  const int end = static_cast<int>(step.nodes.size());
  std::vector<LiveRange> ranges(step.values.size(), {end, -1});
  const auto keep = [&](int value, LiveRange span) {
    LiveRange& range = ranges[static_cast<size_t>(bytes.RootOf(value))];
    range = {std::min(range.first, span.first), std::max(range.last, span.last)};
  };
  const std::vector<NodePlace> places = NodePlaces(step);
  for (size_t n = 0; n < step.nodes.size(); ++n) {
    const LiveRange span = {places[n].first, places[n].last};
    for (const int value : step.nodes[n].inputs) {
      if (value >= 0) keep(value, span);
    }
    for (const int value : step.nodes[n].outputs) keep(value, span);
  }
  const int last = std::max(0, end - 1);
  for (const auto& [name, value] : step.outputs) {
    // The parts of all slices are kept through all of them.
    const bool stacked = step.values[static_cast<size_t>(value)].slice_bytes > 0;
    keep(value, {stacked ? 0 : last, last});
  }
  return ranges;
}

}  // namespace ridge
