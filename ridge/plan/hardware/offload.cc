#include "ridge/plan/hardware/offload.h"

#include <algorithm>

#include "ridge/plan/cost/host_link.h"
#include "ridge/plan/plan_json.h"

namespace ridge {
namespace {

constexpr int64_t kWindows = 2;  // one is filled while the other is read

void AddStep(const Program& program, const UpdatePart& part, OffloadPlan& plan, int64_t& window) {
  const StepPlan& step = *part.step;
  for (size_t n = 0; n < step.nodes.size(); ++n) {
    const LinkBytes bytes = LinkBytesOf(program, step, step.nodes[n]);
    const auto runs = static_cast<double>(part.runs * RunsOf(step, n));
    plan.to_device_bytes += runs * static_cast<double>(bytes.to_device);
    plan.to_host_bytes += runs * static_cast<double>(bytes.to_host);
    window = std::max({window, bytes.to_device, bytes.to_host});
  }
}

}  // namespace

Offload OffloadOf(const std::string& name) {
  if (name == "all") return Offload::kAll;
  return name == "optimizer" ? Offload::kOptimizer : Offload::kNone;
}

std::vector<Purpose> PurposesOnHost(Offload offload) {
  if (offload == Offload::kNone) return {};
  if (offload == Offload::kOptimizer) return {Purpose::kOptimizer};
  return {Purpose::kOptimizer, Purpose::kParameters};
}

OffloadPlan PlanOffload(const Program& program, Offload offload, int64_t accumulate,
                        double host_link_bytes_per_s) {
  OffloadPlan plan;
  plan.host_bytes = program.host_bytes;
  int64_t window = 0;
  for (const UpdatePart& part : UpdateParts(program, accumulate))
    AddStep(program, part, plan, window);
  if (host_link_bytes_per_s > 0) {
    plan.transfer_s = LinkSeconds(plan.to_device_bytes, plan.to_host_bytes, host_link_bytes_per_s);
  }
  if (IsReachedInPlace(offload)) {
    for (const PersistentValue& value : program.persistent) {
      if (value.on_host && value.kind == ValueKind::kParameter) plan.placed.push_back(value.name);
    }
    return plan;
  }
  plan.window_bytes = kWindows * window;
  plan.first_s = LinkSeconds(static_cast<double>(window), 0, host_link_bytes_per_s);
  return plan;
}

MemoryEstimate WithWindows(MemoryEstimate memory, const OffloadPlan& plan) {
  memory.peak_bytes += plan.window_bytes;
  memory.arena_bytes += plan.window_bytes;
  memory.bound_bytes += plan.window_bytes;
  for (auto& [purpose, bytes] : memory.breakdown) {
    if (purpose == "communication") bytes += plan.window_bytes;
  }
  return memory;
}

double SecondsBesideTransfers(double step_s, const OffloadPlan& plan) {
  if (plan.window_bytes == 0) return step_s;
  return plan.first_s + std::max(step_s, plan.transfer_s);
}

}  // namespace ridge
