#include "ridge/plan/memory/placement.h"

#include <algorithm>
#include <set>

#include "ridge/plan/memory/offsets.h"
#include "ridge/plan/tree_sums.h"
#include "ridge/plan/uses.h"

namespace ridge {
namespace {

// How often the bytes of `root` appear among the node's inputs.
int TimesRead(const PlannedNode& node, int root, const SharedBytes& shared) {
  int times = 0;
  for (int value : node.inputs) times += value >= 0 && shared.RootOf(value) == root ? 1 : 0;
  return times;
}

// Whether one of the node's results already shares the bytes of `root`.
bool IsTaken(const PlannedNode& node, int root, const SharedBytes& shared) {
  return std::any_of(node.outputs.begin(), node.outputs.end(),
                     [&](int output) { return shared.RootOf(output) == root; });
}

bool MayShare(const MemorySpace& memory, const StepPlan& step, const std::vector<LiveRange>& ranges,
              int n, int out, int in, const SharedBytes& shared) {
  const PlannedNode& node = step.nodes[static_cast<size_t>(n)];
  const PlannedValue& result = step.values[static_cast<size_t>(out)];
  if (in < 0 || result.persistent || result.shares_with >= 0) return false;
  const int root = shared.RootOf(in);
  const PlannedValue& source = step.values[static_cast<size_t>(root)];
  return !source.persistent && source.on_host == result.on_host &&
         ranges[static_cast<size_t>(root)].last == n && TimesRead(node, root, shared) == 1 &&
         !IsTaken(node, root, shared) && source.slice_bytes == result.slice_bytes &&
         memory.Aligned(source.size_bytes) == memory.Aligned(result.size_bytes);
}

struct Placed {
  std::vector<Buffer> buffers;
  std::vector<int> value_of;  // by buffer; -1: a workspace
  std::vector<int> node_of;   // by buffer; -1: a value
};

// Those that are on the host, or all others.
Placed CollectBuffers(const MemorySpace& memory, const StepPlan& step,
                      const std::vector<LiveRange>& ranges, bool on_host) {
  Placed placed;
  for (size_t v = 0; v < step.values.size(); ++v) {
    const PlannedValue& value = step.values[v];
    if (value.persistent || value.shares_with >= 0 || ranges[v].last < 0) continue;
    if (value.on_host != on_host) continue;
    placed.buffers.push_back({memory.Aligned(value.size_bytes), ranges[v].first, ranges[v].last});
    placed.value_of.push_back(static_cast<int>(v));
    placed.node_of.push_back(-1);
  }
  const std::vector<NodePlace> places = NodePlaces(step);
  for (size_t n = 0; n < step.nodes.size(); ++n) {
    const int64_t bytes = step.nodes[n].choice.workspace_bytes;
    if (bytes == 0 || step.nodes[n].on_host != on_host) continue;
    placed.buffers.push_back({memory.Aligned(bytes), places[n].first, places[n].last});
    placed.value_of.push_back(-1);
    placed.node_of.push_back(static_cast<int>(n));
  }
  return placed;
}

// Each value and workspace behind `base`.
void SetOffsets(const Placed& placed, const Placement& placement, int64_t base, StepPlan& step) {
  for (size_t b = 0; b < placed.buffers.size(); ++b) {
    const int64_t offset = base + placement.offsets[b];
    if (placed.value_of[b] >= 0) {
      step.values[static_cast<size_t>(placed.value_of[b])].offset_bytes = offset;
    } else {
      step.nodes[static_cast<size_t>(placed.node_of[b])].workspace_offset = offset;
    }
  }
}

// Scratch of the nodes on the host, from `base` on.  Returns its bytes.
int64_t PlaceHostScratch(const MemorySpace& memory, int64_t base, StepPlan& step) {
  const SharedBytes shared(step);
  const Placed placed = CollectBuffers(memory, step, LiveRanges(step, shared), /*on_host=*/true);
  if (placed.buffers.empty()) return 0;
  const Placement placement = PlaceBuffers(placed.buffers);
  SetOffsets(placed, placement, base, step);
  return placement.peak_bytes;
}

}  // namespace

void ShareInPlace(const MemorySpace& memory, StepPlan& step) {
  SharedBytes shared(step);
  std::vector<LiveRange> ranges = LiveRanges(step, shared);
  // Outputs are read after the last node, so it may not write over them either.
  for (const auto& [name, value] : step.outputs)
    ranges[static_cast<size_t>(shared.RootOf(value))].last = static_cast<int>(step.nodes.size());
  const std::vector<NodePlace> places = NodePlaces(step);
  for (int n = 0; n < static_cast<int>(step.nodes.size()); ++n) {
    const PlannedNode& node = step.nodes[static_cast<size_t>(n)];
    if (places[static_cast<size_t>(n)].parallel >= 0)
      continue;  // another stream may read the input
    for (const auto& [out, in] : node.choice.in_place) {
      const int result = node.outputs[static_cast<size_t>(out)];
      const int operand = node.inputs[static_cast<size_t>(in)];
      if (!MayShare(memory, step, ranges, n, result, operand, shared)) continue;
      const int root = shared.RootOf(operand);
      ranges[static_cast<size_t>(root)].last = ranges[static_cast<size_t>(result)].last;
      shared.Share(result, operand);
      step.values[static_cast<size_t>(result)].shares_with = operand;
    }
  }
}

void PlacePersistent(Program& program) {
  int64_t offset = 0;
  const auto place = [&](size_t index) {
    program.persistent[index].offset_bytes = offset;
    offset += program.memory.Aligned(program.persistent[index].size_bytes);
  };
  const std::vector<std::vector<int>> blocks = SumBlocks(program);
  std::set<size_t> in_blocks;
  for (const std::vector<int>& sums : blocks) in_blocks.insert(sums.begin(), sums.end());
  const auto place_where = [&](bool on_host) {
    for (size_t i = 0; i < program.persistent.size(); ++i) {
      if (!in_blocks.contains(i) && program.persistent[i].on_host == on_host) place(i);
    }
  };
  place_where(true);
  program.host_scratch_offset = offset;
  int64_t scratch = 0;
  for (StepPlan& step : program.steps)
    scratch = std::max(scratch, PlaceHostScratch(program.memory, offset, step));
  offset = program.host_bytes = RoundUp(offset + scratch, program.memory.page_bytes);
  place_where(false);
  for (const std::vector<int>& sums : blocks) {
    for (const int sum : sums) place(static_cast<size_t>(sum));
  }
  program.persistent_bytes = offset;
}

void PlaceValues(const Program& program, StepPlan& step) {
  SharedBytes shared(step);
  const std::vector<LiveRange> ranges = LiveRanges(step, shared);
  const Placed placed = CollectBuffers(program.memory, step, ranges, /*on_host=*/false);
  const Placement placement = PlaceBuffers(placed.buffers);
  step.scratch_bytes = placement.peak_bytes == INT64_MAX ? 0 : placement.peak_bytes;
  step.bound_bytes = LiveBound(placed.buffers, &step.peak_node);
  SetOffsets(placed, placement, program.persistent_bytes, step);
  for (size_t v = 0; v < step.values.size(); ++v) {
    PlannedValue& value = step.values[v];
    value.live = ranges[static_cast<size_t>(shared.RootOf(static_cast<int>(v)))];
    if (value.persistent) {
      value.offset_bytes =
          program.persistent[static_cast<size_t>(value.persistent_index)].offset_bytes;
    }
  }
  for (size_t v = 0; v < step.values.size(); ++v) {
    PlannedValue& value = step.values[v];
    const PlannedValue& root = step.values[static_cast<size_t>(shared.RootOf(static_cast<int>(v)))];
    value.offset_bytes = root.offset_bytes;
    value.persistent = root.persistent;
    value.persistent_index = root.persistent_index;
    value.slice_bytes = root.slice_bytes;
  }
}

}  // namespace ridge
