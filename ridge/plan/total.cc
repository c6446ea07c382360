#include "ridge/plan/total.h"

#include <algorithm>
#include <array>

#include "ridge/core/rounding.h"
#include "ridge/plan/memory/placement.h"
#include "ridge/plan/region.h"
#include "ridge/plan/staging.h"

namespace ridge {
namespace {

using Bytes = std::array<int64_t, 6>;  // by Purpose

const StepPlan* LargestStep(const Program& program) {
  const StepPlan* largest = nullptr;
  for (const StepPlan& step : program.steps) {
    if (largest == nullptr || step.scratch_bytes > largest->scratch_bytes) largest = &step;
  }
  return largest;
}

// Adds and lists the scratch values that are live at the step's peak.
void AddScratch(const MemorySpace& memory, const StepPlan& step, Bytes& bytes,
                std::vector<std::pair<std::string, int64_t>>& values) {
  for (const PlannedValue& value : step.values) {
    const bool alive = value.live.first <= step.peak_node && step.peak_node <= value.live.last;
    if (value.persistent || value.on_host || value.shares_with >= 0 || !alive) continue;
    bytes[static_cast<size_t>(value.purpose)] += memory.Aligned(value.size_bytes);
    values.emplace_back(value.name, value.size_bytes);
  }
  if (step.nodes.empty()) return;
  const PlannedNode& node = step.nodes[static_cast<size_t>(step.peak_node)];
  if (node.on_host) return;
  bytes[static_cast<size_t>(Purpose::kWorkspace)] += memory.Aligned(node.choice.workspace_bytes);
}

// Of a region; its streams run at the same time.
int64_t HeapBytes(const StepPlan& step, const Region& region) {
  int64_t most = 0, sum = 0;
  for (const Region& part : region.parts) {
    const int64_t bytes = HeapBytes(step, part);
    most = std::max(most, bytes);
    sum += bytes;
  }
  if (region.kind == Region::Kind::kParallel) return sum;
  if (!region.parts.empty()) return most;
  for (int n = region.first; n < region.end; ++n) {
    const PlannedNode& node = step.nodes[static_cast<size_t>(n)];
    if (!node.on_host) most = std::max(most, node.choice.heap_bytes);
  }
  return most;
}

}  // namespace

int64_t HeapBytes(const Program& program) {
  int64_t most = 0;
  for (const StepPlan& step : program.steps) most = std::max(most, HeapBytes(step, step.body));
  return most;
}

int64_t CountKernels(const Program& program) {
  int64_t count = 0;
  for (const StepPlan& step : program.steps) count += static_cast<int64_t>(step.nodes.size());
  return count;
}

int64_t RecordedBytes(const Program& program, int64_t run_bytes) {
  constexpr int64_t kPage = int64_t{2} << 20;  // by which drivers take memory
  int64_t runs = 0;
  for (const StepPlan& step : program.steps) {
    for (size_t n = 0; n < step.nodes.size(); ++n) {
      if (!step.nodes[n].on_host) runs += RunsOf(step, n);
    }
  }
  return RoundUp(kInputSlots * runs * run_bytes, kPage);
}

int64_t ProfiledRuntimeBytes(const DeviceFacts& device, const Program& program) {
  // A program without training measures these numbers, so loader, reports, checkpoints and their
  // code are added (2.8 MiB measured with mlp, 3.6 with cnn).
  constexpr int64_t kRunBytes = int64_t{4} << 20;
  return device.runtime_bytes + kRunBytes + device.bytes_per_kernel * CountKernels(program) +
         HeapBytes(program);
}

MemoryEstimate EstimateMemory(const Program& program, int64_t runtime_bytes, int64_t data_bytes) {
  MemoryEstimate estimate;
  Bytes bytes{};
  for (const PersistentValue& value : program.persistent) {
    if (value.on_host) continue;
    bytes[static_cast<size_t>(value.purpose)] += program.memory.Aligned(value.size_bytes);
    estimate.largest.emplace_back(value.name, value.size_bytes);
  }
  if (const StepPlan* step = LargestStep(program); step != nullptr) {
    AddScratch(program.memory, *step, bytes, estimate.largest);
    estimate.peak_step = step->name;
    if (!step->nodes.empty())
      estimate.peak_node = step->nodes[static_cast<size_t>(step->peak_node)].name;
  }
  int64_t placed = 0;
  for (int64_t part : bytes) placed += part;
  bytes[static_cast<size_t>(Purpose::kActivations)] += program.device_arena_bytes() - placed;
  bytes[static_cast<size_t>(Purpose::kInputs)] += data_bytes;
  for (size_t p = 0; p < bytes.size(); ++p)
    estimate.breakdown.emplace_back(PurposeName(static_cast<Purpose>(p)), bytes[p]);
  estimate.breakdown.emplace_back("communication", 0);
  estimate.breakdown.emplace_back("runtime", runtime_bytes);
  estimate.arena_bytes = program.device_arena_bytes();
  estimate.bound_bytes = program.bound_bytes - program.host_bytes;
  estimate.peak_bytes = estimate.arena_bytes + data_bytes + runtime_bytes;
  std::stable_sort(estimate.largest.begin(), estimate.largest.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  if (estimate.largest.size() > 5) estimate.largest.resize(5);
  return estimate;
}

}  // namespace ridge
