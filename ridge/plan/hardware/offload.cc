#include "ridge/plan/hardware/offload.h"

#include <algorithm>

#include "ridge/plan/plan_json.h"

namespace ridge {
namespace {

// Copies of pinned memory over PCIe 5 reach 55.6 of 63 GB/s (NVIDIA's nvbandwidth).
constexpr double kLinkShare = 0.88;
constexpr int64_t kWindows = 2;  // one is filled while the other is read

bool RestsOnHost(const PersistentValue& value, Offload offload) {
  if (value.purpose == Purpose::kOptimizer) return offload != Offload::kNone;
  return value.purpose == Purpose::kParameters && offload == Offload::kAll;
}

// Bytes of the different offloaded variables among the values.
int64_t BytesAmong(const Program& program, const StepPlan& step, const std::vector<int>& values,
                   Offload offload) {
  std::vector<int> variables;
  for (const int value : values) {
    if (value < 0) continue;
    const int variable = step.values[static_cast<size_t>(value)].persistent_index;
    if (variable >= 0) variables.push_back(variable);
  }
  std::sort(variables.begin(), variables.end());
  variables.erase(std::unique(variables.begin(), variables.end()), variables.end());
  int64_t bytes = 0;
  for (const int variable : variables) {
    const PersistentValue& value = program.persistent[static_cast<size_t>(variable)];
    if (RestsOnHost(value, offload)) bytes += value.size_bytes;
  }
  return bytes;
}

void AddStep(const Program& program, const UpdatePart& part, Offload offload, OffloadPlan& plan) {
  const StepPlan& step = *part.step;
  for (size_t n = 0; n < step.nodes.size(); ++n) {
    const PlannedNode& node = step.nodes[n];
    const auto runs = static_cast<double>(part.runs * RunsOf(step, n));
    const int64_t read = BytesAmong(program, step, node.inputs, offload);
    const int64_t written = BytesAmong(program, step, node.outputs, offload);
    plan.to_device_bytes += runs * static_cast<double>(read);
    plan.to_host_bytes += runs * static_cast<double>(written);
    plan.window_bytes = std::max(plan.window_bytes, kWindows * std::max(read, written));
  }
}

int64_t HostBytes(const Program& program, Offload offload, Purpose purpose) {
  int64_t bytes = 0;
  for (const PersistentValue& value : program.persistent) {
    if (value.purpose == purpose && RestsOnHost(value, offload)) bytes += value.size_bytes;
  }
  return bytes;
}

}  // namespace

Offload OffloadOf(const std::string& name) {
  if (name == "all") return Offload::kAll;
  return name == "optimizer" ? Offload::kOptimizer : Offload::kNone;
}

OffloadPlan PlanOffload(const Program& program, Offload offload, int64_t accumulate,
                        double host_link_bytes_per_s) {
  OffloadPlan plan;
  for (const Purpose purpose : {Purpose::kParameters, Purpose::kOptimizer})
    plan.host_bytes += HostBytes(program, offload, purpose);
  for (const UpdatePart& part : UpdateParts(program, accumulate))
    AddStep(program, part, offload, plan);
  const double rate = kLinkShare * host_link_bytes_per_s;
  plan.transfer_s = std::max(plan.to_device_bytes, plan.to_host_bytes) / rate;
  plan.first_s = static_cast<double>(plan.window_bytes / kWindows) / rate;
  return plan;
}

MemoryEstimate WithOffload(MemoryEstimate memory, const Program& program, Offload offload,
                           const OffloadPlan& plan) {
  const int64_t change = plan.window_bytes - plan.host_bytes;
  memory.peak_bytes += change;
  memory.arena_bytes += change;
  memory.bound_bytes += change;
  for (auto& [purpose, bytes] : memory.breakdown) {
    for (const Purpose moved : {Purpose::kParameters, Purpose::kOptimizer}) {
      if (purpose == PurposeName(moved)) bytes -= HostBytes(program, offload, moved);
    }
    if (purpose == "communication") bytes += plan.window_bytes;
  }
  std::erase_if(memory.largest, [&](const std::pair<std::string, int64_t>& largest) {
    return std::any_of(program.persistent.begin(), program.persistent.end(),
                       [&](const PersistentValue& value) {
                         return value.name == largest.first && RestsOnHost(value, offload);
                       });
  });
  return memory;
}

double SecondsBesideTransfers(double step_s, const OffloadPlan& plan) {
  return plan.first_s + std::max(step_s, plan.transfer_s);
}

}  // namespace ridge
