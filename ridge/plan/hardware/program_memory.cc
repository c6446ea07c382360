#include "ridge/plan/hardware/program_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "ridge/core/units.h"
#include "ridge/plan/memory/phases.h"

namespace ridge {
namespace {

int64_t Scaled(int64_t bytes, double scale) {
  return static_cast<int64_t>(static_cast<double>(bytes) * scale);
}

int64_t BytesOf(const MemoryEstimate& plan, Purpose purpose) {
  const auto found = std::find_if(plan.breakdown.begin(), plan.breakdown.end(),
                                  [&](const auto& of) { return of.first == PurposeName(purpose); });
  return found == plan.breakdown.end() ? 0 : found->second;
}

}  // namespace

MemoryEstimate MemoryOf(const Software& software, const MemoryEstimate& plan) {
  MemoryEstimate memory = plan;
  memory.peak_bytes = 0;
  memory.is_placed = false;
  for (auto& [purpose, bytes] : memory.breakdown) {
    if (purpose == PurposeName(Purpose::kGradients)) bytes = BytesOf(plan, Purpose::kParameters);
    if (purpose == PurposeName(Purpose::kActivations) ||
        purpose == PurposeName(Purpose::kWorkspace))
      bytes = Scaled(bytes, software.memory_scale);
    memory.peak_bytes += bytes;
  }
  memory.range = {Scaled(memory.peak_bytes, software.memory_low),
                  Scaled(memory.peak_bytes, software.memory_high), software.memory_scale,
                  software.memory_evidence};
  return memory;
}

MemoryRange PlannedRange(const Program& program, const MemoryEstimate& plan,
                         int64_t context_spread_bytes) {
  // What has only a bound may take nothing.
  const int64_t least = LargestLive(program, [](const KernelChoice& choice) {
    return choice.is_bound ? 0 : choice.workspace_bytes;
  });
  const int64_t bounded = std::max<int64_t>(0, program.bound_bytes - program.host_bytes - least);
  const std::string bounds =
      bounded == 0 ? "" : ", and workspaces that are upper bounds " + FormatBytes(bounded);
  return {.low_bytes = plan.peak_bytes - bounded - context_spread_bytes,
          .high_bytes = plan.peak_bytes,
          .evidence = fmt::format("the context may take {} less (published ones differ so much){}",
                                  FormatBytes(context_spread_bytes), bounds)};
}

}  // namespace ridge
