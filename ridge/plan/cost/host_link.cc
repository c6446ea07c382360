#include "ridge/plan/cost/host_link.h"

#include <algorithm>

namespace ridge {
namespace {

// Bytes of the different values and variables on the host among the values.
int64_t BytesAmong(const Program& program, const StepPlan& step, const std::vector<int>& values) {
  std::vector<int> variables;
  int64_t bytes = 0;
  for (const int value : values) {
    if (value < 0) continue;
    const PlannedValue& planned = step.values[static_cast<size_t>(value)];
    if (planned.persistent_index >= 0) {
      variables.push_back(planned.persistent_index);
    } else if (planned.on_host) {
      bytes += planned.part_bytes();
    }
  }
  std::sort(variables.begin(), variables.end());
  variables.erase(std::unique(variables.begin(), variables.end()), variables.end());
  for (const int variable : variables) {
    const PersistentValue& value = program.persistent[static_cast<size_t>(variable)];
    if (value.on_host) bytes += value.size_bytes;
  }
  return bytes;
}

}  // namespace

LinkBytes LinkBytesOf(const Program& program, const StepPlan& step, const PlannedNode& node) {
  if (node.on_host) return {};
  return {BytesAmong(program, step, node.inputs), BytesAmong(program, step, node.outputs)};
}

double LinkSeconds(double to_device_bytes, double to_host_bytes, double link_bytes_per_s) {
  return std::max(to_device_bytes, to_host_bytes) / (kLinkShare * link_bytes_per_s);
}

}  // namespace ridge
