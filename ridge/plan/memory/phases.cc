#include "ridge/plan/memory/phases.h"

#include <algorithm>
#include <string_view>

namespace ridge {
namespace {

constexpr size_t kNamed = 5;
constexpr const char* kForward = "forward";
constexpr const char* kLoss = "loss";
constexpr const char* kBackward = "backward";
constexpr const char* kOptimizer = "optimizer";
constexpr const char* kEvaluation = "evaluation";
constexpr const char* kCheckpoint = "checkpoint";

bool IsLoss(const PlannedNode& node) {
  const std::string_view op = node.op;
  return op.ends_with("cross_entropy") || op.ends_with("_loss");
}

bool IsGradient(const PlannedNode& node) {
  const std::string_view name = node.name;
  return std::string_view(node.op).ends_with("_grad") || name.ends_with(".grad") ||
         name.find("_grad_") != std::string_view::npos;
}

bool IsUpdate(const PlannedNode& node) {
  return node.def != nullptr && node.def->cost_class == CostClass::kOptimizer;
}

// By node.
std::vector<const char*> PhasesOf(const StepPlan& step) {
  std::vector<const char*> phases;
  const bool evaluates = step.name == "eval" || step.name == "infer";
  const char* now = evaluates ? kEvaluation : step.name == "update" ? kOptimizer : kForward;
  for (const PlannedNode& node : step.nodes) {
    if (now == kForward && IsLoss(node)) now = kLoss;
    if ((now == kForward || now == kLoss) && IsGradient(node)) now = kBackward;
    phases.push_back(!evaluates && IsUpdate(node) ? kOptimizer : now);
  }
  return phases;
}

bool IsScratch(const PlannedValue& value) { return !value.persistent && value.shares_with < 0; }

// Scratch bytes that are live at each node, without its workspace.
std::vector<int64_t> LiveValueBytes(const MemorySpace& memory, const StepPlan& step) {
  std::vector<int64_t> change(step.nodes.size() + 1, 0);
  for (const PlannedValue& value : step.values) {
    if (!IsScratch(value) || value.live.last < value.live.first) continue;
    const auto first = static_cast<size_t>(std::max(0, value.live.first));
    const auto end = std::min(static_cast<size_t>(value.live.last) + 1, step.nodes.size());
    change[first] += memory.Aligned(value.size_bytes);
    change[end] -= memory.Aligned(value.size_bytes);
  }
  std::vector<int64_t> live;
  int64_t sum = 0;
  for (size_t n = 0; n < step.nodes.size(); ++n) {
    sum += change[n];
    live.push_back(sum);
  }
  return live;
}

// With it.
std::vector<int64_t> LiveBytes(const MemorySpace& memory, const StepPlan& step) {
  std::vector<int64_t> live = LiveValueBytes(memory, step);
  for (size_t n = 0; n < live.size(); ++n)
    live[n] += memory.Aligned(step.nodes[n].choice.workspace_bytes);
  return live;
}

std::vector<std::pair<std::string, int64_t>> LargestAt(const StepPlan& step, size_t n) {
  std::vector<std::pair<std::string, int64_t>> values;
  const int at = static_cast<int>(n);
  for (const PlannedValue& value : step.values) {
    if (IsScratch(value) && value.live.first <= at && at <= value.live.last)
      values.emplace_back(value.name, value.size_bytes);
  }
  if (const int64_t bytes = step.nodes[n].choice.workspace_bytes; bytes > 0)
    values.emplace_back("workspace of " + step.nodes[n].name, bytes);
  std::stable_sort(values.begin(), values.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  if (values.size() > kNamed) values.resize(kNamed);
  return values;
}

void AddPhase(const Program& program, const StepPlan& step, const char* phase,
              const std::vector<const char*>& phases, const std::vector<int64_t>& live,
              std::vector<PhasePeak>& peaks) {
  size_t most = live.size();
  for (size_t n = 0; n < live.size(); ++n) {
    if (phases[n] == phase && (most == live.size() || live[n] > live[most])) most = n;
  }
  if (most == live.size()) return;
  peaks.push_back({phase, step.name, step.nodes[most].name,
                   program.device_persistent_bytes() + live[most], LargestAt(step, most)});
}

}  // namespace

std::string PlaceOf(const PhasePeak& peak) {
  return peak.step.empty() ? "between steps" : peak.step + " " + peak.node;
}

std::vector<PhasePeak> PhasePeaks(const Program& program) {
  std::vector<PhasePeak> peaks;
  for (const StepPlan& step : program.steps) {
    const std::vector<const char*> phases = PhasesOf(step);
    const std::vector<int64_t> live = LiveBytes(program.memory, step);
    for (const char* phase : {kForward, kLoss, kBackward, kOptimizer, kEvaluation})
      AddPhase(program, step, phase, phases, live, peaks);
  }
  if (program.Find("train") == nullptr && program.Find("micro") == nullptr) return peaks;
  PhasePeak copies = {
      kCheckpoint, "", "", program.device_persistent_bytes() + program.copy_bytes, {}};
  if (program.copy_bytes > 0)
    copies.largest.emplace_back("row-major copy of a variable", program.copy_bytes);
  peaks.push_back(std::move(copies));
  return peaks;
}

int64_t LargestLive(const Program& program,
                    const std::function<int64_t(const KernelChoice&)>& workspace_of) {
  int64_t most = 0;
  for (const StepPlan& step : program.steps) {
    const std::vector<int64_t> live = LiveValueBytes(program.memory, step);
    for (size_t n = 0; n < live.size(); ++n) {
      const int64_t workspace = workspace_of(step.nodes[n].choice);
      most = std::max(most, live[n] + program.memory.Aligned(workspace));
    }
  }
  return program.device_persistent_bytes() + most;
}

std::vector<NodeMemory> MemoryByNode(const Program& program, const StepPlan& step) {
  const std::vector<const char*> phases = PhasesOf(step);
  const std::vector<int64_t> live = LiveBytes(program.memory, step);
  std::vector<NodeMemory> nodes;
  for (size_t n = 0; n < live.size(); ++n)
    nodes.push_back({phases[n], program.device_persistent_bytes() + live[n], LargestAt(step, n)});
  return nodes;
}

}  // namespace ridge
