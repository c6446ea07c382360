#include "ridge/plan/memory/placement.h"

#include <algorithm>
#include <utility>

#include "ridge/core/rounding.h"
#include "ridge/plan/memory/offsets.h"

namespace ridge {
namespace {

int64_t Aligned(int64_t bytes) { return RoundUp(bytes, kAlignment); }

// RootValue of all values.  Chains of values that share bytes can be as long as the plan, so each
// is walked once and then shortened.
class Roots {
 public:
  explicit Roots(const StepPlan& step) {
    for (const PlannedValue& value : step.values) parent_.push_back(value.shares_with);
  }

  int Of(int value) {
    int root = value;
    while (parent_[static_cast<size_t>(root)] >= 0) root = parent_[static_cast<size_t>(root)];
    while (value != root) value = std::exchange(parent_[static_cast<size_t>(value)], root);
    return root;
  }

  // Makes `value`, a root, share the bytes of `with`.
  void Share(int value, int with) { parent_[static_cast<size_t>(value)] = Of(with); }

 private:
  std::vector<int> parent_;  // -1: a root
};

// By node: the nodes during which its bytes must be live, which is its whole parallel region.
std::vector<LiveRange> NodeSpans(const StepPlan& step) {
  std::vector<LiveRange> spans;
  for (const NodePlace& place : NodePlaces(step)) spans.push_back({place.first, place.last});
  return spans;
}

// Live range of each root: from its first writer to its last reader.  Persistent values begin at 0;
// outputs are live to the end.
std::vector<LiveRange> RootRanges(const StepPlan& step, Roots& roots) {
  const int end = static_cast<int>(step.nodes.size());
  std::vector<LiveRange> ranges(step.values.size(), {end, -1});
  const std::vector<LiveRange> spans = NodeSpans(step);
  const auto keep = [&](int value, LiveRange span) {
    LiveRange& range = ranges[static_cast<size_t>(roots.Of(value))];
    range.first = std::min(range.first, span.first);
    range.last = std::max(range.last, span.last);
  };
  const auto touch = [&](int value, int n) { keep(value, spans[static_cast<size_t>(n)]); };
  for (int n = 0; n < end; ++n) {
    for (int value : step.nodes[static_cast<size_t>(n)].inputs) {
      if (value >= 0) touch(value, n);
    }
    for (int value : step.nodes[static_cast<size_t>(n)].outputs) touch(value, n);
  }
  const int last = std::max(0, end - 1);
  for (const auto& [name, value] : step.outputs) keep(value, {last, last});
  return ranges;
}

// How often the bytes of `root` appear among the node's inputs.
int TimesRead(const PlannedNode& node, int root, Roots& roots) {
  int times = 0;
  for (int value : node.inputs) times += value >= 0 && roots.Of(value) == root ? 1 : 0;
  return times;
}

// Whether one of the node's results already shares the bytes of `root`.
bool IsTaken(const PlannedNode& node, int root, Roots& roots) {
  return std::any_of(node.outputs.begin(), node.outputs.end(),
                     [&](int output) { return roots.Of(output) == root; });
}

bool MayShare(const StepPlan& step, const std::vector<LiveRange>& ranges, int n, int out, int in,
              Roots& roots) {
  const PlannedNode& node = step.nodes[static_cast<size_t>(n)];
  const PlannedValue& result = step.values[static_cast<size_t>(out)];
  if (in < 0 || result.persistent || result.shares_with >= 0) return false;
  const int root = roots.Of(in);
  const PlannedValue& source = step.values[static_cast<size_t>(root)];
  return !source.persistent && ranges[static_cast<size_t>(root)].last == n &&
         TimesRead(node, root, roots) == 1 && !IsTaken(node, root, roots) &&
         Aligned(source.size_bytes) == Aligned(result.size_bytes);
}

struct Placed {
  std::vector<Buffer> buffers;
  std::vector<int> value_of;  // by buffer; -1: a workspace
  std::vector<int> node_of;   // by buffer; -1: a value
};

Placed CollectBuffers(const StepPlan& step, const std::vector<LiveRange>& ranges) {
  Placed placed;
  for (size_t v = 0; v < step.values.size(); ++v) {
    const PlannedValue& value = step.values[v];
    if (value.persistent || value.shares_with >= 0 || ranges[v].last < 0) continue;
    placed.buffers.push_back({Aligned(value.size_bytes), ranges[v].first, ranges[v].last});
    placed.value_of.push_back(static_cast<int>(v));
    placed.node_of.push_back(-1);
  }
  const std::vector<LiveRange> spans = NodeSpans(step);
  for (size_t n = 0; n < step.nodes.size(); ++n) {
    const int64_t bytes = step.nodes[n].choice.workspace_bytes;
    if (bytes == 0) continue;
    placed.buffers.push_back({Aligned(bytes), spans[n].first, spans[n].last});
    placed.value_of.push_back(-1);
    placed.node_of.push_back(static_cast<int>(n));
  }
  return placed;
}

}  // namespace

void ShareInPlace(StepPlan& step) {
  Roots roots(step);
  std::vector<LiveRange> ranges = RootRanges(step, roots);
  // Outputs are read after the last node, so it may not write over them either.
  for (const auto& [name, value] : step.outputs)
    ranges[static_cast<size_t>(roots.Of(value))].last = static_cast<int>(step.nodes.size());
  const std::vector<NodePlace> places = NodePlaces(step);
  for (int n = 0; n < static_cast<int>(step.nodes.size()); ++n) {
    const PlannedNode& node = step.nodes[static_cast<size_t>(n)];
    if (places[static_cast<size_t>(n)].parallel >= 0)
      continue;  // another stream may read the input
    for (const auto& [out, in] : node.choice.in_place) {
      const int result = node.outputs[static_cast<size_t>(out)];
      const int operand = node.inputs[static_cast<size_t>(in)];
      if (!MayShare(step, ranges, n, result, operand, roots)) continue;
      const int root = roots.Of(operand);
      ranges[static_cast<size_t>(root)].last = ranges[static_cast<size_t>(result)].last;
      roots.Share(result, operand);
      step.values[static_cast<size_t>(result)].shares_with = operand;
    }
  }
}

int64_t PlacePersistent(std::vector<PersistentValue>& persistent) {
  int64_t offset = 0;
  for (PersistentValue& value : persistent) {
    value.offset_bytes = offset;
    offset += Aligned(value.size_bytes);
  }
  return offset;
}

void PlaceValues(const std::vector<PersistentValue>& persistent, int64_t scratch_begin,
                 StepPlan& step) {
  Roots roots(step);
  const std::vector<LiveRange> ranges = RootRanges(step, roots);
  const Placed placed = CollectBuffers(step, ranges);
  const Placement placement = PlaceBuffers(placed.buffers);
  step.scratch_bytes = placement.peak_bytes == INT64_MAX ? 0 : placement.peak_bytes;
  step.bound_bytes = LiveBound(placed.buffers, &step.peak_node);
  for (size_t b = 0; b < placed.buffers.size(); ++b) {
    const int64_t offset = scratch_begin + placement.offsets[b];
    if (placed.value_of[b] >= 0) {
      step.values[static_cast<size_t>(placed.value_of[b])].offset_bytes = offset;
    } else {
      step.nodes[static_cast<size_t>(placed.node_of[b])].workspace_offset = offset;
    }
  }
  for (size_t v = 0; v < step.values.size(); ++v) {
    PlannedValue& value = step.values[v];
    value.live = ranges[static_cast<size_t>(roots.Of(static_cast<int>(v)))];
    if (value.persistent) {
      value.offset_bytes = persistent[static_cast<size_t>(value.persistent_index)].offset_bytes;
    }
  }
  for (size_t v = 0; v < step.values.size(); ++v) {
    PlannedValue& value = step.values[v];
    const PlannedValue& root = step.values[static_cast<size_t>(roots.Of(static_cast<int>(v)))];
    value.offset_bytes = root.offset_bytes;
    value.persistent = root.persistent;
    value.persistent_index = root.persistent_index;
    value.slice_bytes = root.slice_bytes;
  }
}

}  // namespace ridge
