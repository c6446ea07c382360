#include "ridge/plan/memory/placement.h"

#include <fmt/format.h>

#include <algorithm>

#include "ridge/plan/memory/offsets.h"

namespace ridge {
namespace {

int64_t Aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// First writer and last reader of the bytes behind each root value.  What is there before the first
// node (persistent) begins at 0; outputs live to the end.
std::vector<LiveRange> RootRanges(const StepPlan& step) {
  const int end = static_cast<int>(step.nodes.size());
  std::vector<LiveRange> ranges(step.values.size(), {end, -1});
  const auto touch = [&](int value, int n) {
    LiveRange& range = ranges[static_cast<size_t>(RootValue(step, value))];
    range.first = std::min(range.first, n);
    range.last = std::max(range.last, n);
  };
  for (int n = 0; n < end; ++n) {
    for (int value : step.nodes[static_cast<size_t>(n)].inputs) {
      if (value >= 0) touch(value, n);
    }
    for (int value : step.nodes[static_cast<size_t>(n)].outputs) touch(value, n);
  }
  for (const auto& [name, value] : step.outputs) touch(value, std::max(0, end - 1));
  return ranges;
}

bool IsScratch(const StepPlan& step, int value) {
  return !step.values[static_cast<size_t>(RootValue(step, value))].persistent;
}

// How often the bytes of `root` appear among the node's inputs.
int TimesRead(const StepPlan& step, const PlannedNode& node, int root) {
  int times = 0;
  for (int value : node.inputs) times += value >= 0 && RootValue(step, value) == root ? 1 : 0;
  return times;
}

bool MayShare(const StepPlan& step, const std::vector<LiveRange>& ranges, int n, int out, int in) {
  const PlannedNode& node = step.nodes[static_cast<size_t>(n)];
  const PlannedValue& result = step.values[static_cast<size_t>(out)];
  if (in < 0 || result.persistent || result.shares_with >= 0 || !IsScratch(step, in)) return false;
  const int root = RootValue(step, in);
  return ranges[static_cast<size_t>(root)].last == n && TimesRead(step, node, root) == 1 &&
         Aligned(step.values[static_cast<size_t>(root)].size_bytes) == Aligned(result.size_bytes);
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
  for (size_t n = 0; n < step.nodes.size(); ++n) {
    const int64_t bytes = step.nodes[n].choice.workspace_bytes;
    if (bytes == 0) continue;
    placed.buffers.push_back({Aligned(bytes), static_cast<int>(n), static_cast<int>(n)});
    placed.value_of.push_back(-1);
    placed.node_of.push_back(static_cast<int>(n));
  }
  return placed;
}

}  // namespace

int RootValue(const StepPlan& step, int value) {
  while (step.values[static_cast<size_t>(value)].shares_with >= 0)
    value = step.values[static_cast<size_t>(value)].shares_with;
  return value;
}

void ShareInPlace(StepPlan& step) {
  std::vector<LiveRange> ranges = RootRanges(step);
  for (int n = 0; n < static_cast<int>(step.nodes.size()); ++n) {
    const PlannedNode& node = step.nodes[static_cast<size_t>(n)];
    for (const auto& [out, in] : node.choice.in_place) {
      const int result = node.outputs[static_cast<size_t>(out)];
      const int operand = node.inputs[static_cast<size_t>(in)];
      if (!MayShare(step, ranges, n, result, operand)) continue;
      const int root = RootValue(step, operand);
      ranges[static_cast<size_t>(root)].last = ranges[static_cast<size_t>(result)].last;
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
  const std::vector<LiveRange> ranges = RootRanges(step);
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
    const auto root = static_cast<size_t>(RootValue(step, static_cast<int>(v)));
    value.live = ranges[root];
    if (value.persistent) {
      value.offset_bytes = persistent[static_cast<size_t>(value.persistent_index)].offset_bytes;
    }
  }
  for (size_t v = 0; v < step.values.size(); ++v) {
    PlannedValue& value = step.values[v];
    const PlannedValue& root =
        step.values[static_cast<size_t>(RootValue(step, static_cast<int>(v)))];
    value.offset_bytes = root.offset_bytes;
    value.persistent = root.persistent;
    value.persistent_index = root.persistent_index;
  }
}

Status CheckPlacement(const StepPlan& step) {
  std::vector<int> roots;
  for (size_t v = 0; v < step.values.size(); ++v) {
    const PlannedValue& value = step.values[v];
    if (!value.persistent && value.shares_with < 0 && value.live.last >= 0 && value.size_bytes > 0)
      roots.push_back(static_cast<int>(v));
  }
  std::sort(roots.begin(), roots.end(), [&](int a, int b) {
    return step.values[static_cast<size_t>(a)].live.first <
           step.values[static_cast<size_t>(b)].live.first;
  });
  std::vector<int> alive;
  for (int b : roots) {
    const PlannedValue& vb = step.values[static_cast<size_t>(b)];
    std::erase_if(alive, [&](int a) {
      return step.values[static_cast<size_t>(a)].live.last < vb.live.first;
    });
    for (int a : alive) {
      const PlannedValue& va = step.values[static_cast<size_t>(a)];
      if (va.offset_bytes < vb.offset_bytes + vb.size_bytes &&
          vb.offset_bytes < va.offset_bytes + va.size_bytes) {
        return Status(ErrorCode::kInternal,
                      fmt::format("plan {}: '{}' and '{}' live at the same time and share bytes",
                                  step.name, va.name, vb.name));
      }
    }
    alive.push_back(b);
  }
  return Status();
}

}  // namespace ridge
