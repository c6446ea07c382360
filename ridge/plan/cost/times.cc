#include "ridge/plan/cost/times.h"

#include <algorithm>
#include <map>
#include <span>

namespace ridge {
namespace {

// Scales the seconds of a section's nodes, in order, to those of its longest lane.
void ShareLanes(std::span<const PlannedNode> nodes, std::span<double> node_s) {
  std::map<int, double> lanes;
  for (size_t n = 0; n < nodes.size(); ++n) lanes[nodes[n].lane] += node_s[n];
  double sum_s = 0, longest_s = 0;
  for (const auto& [lane, lane_s] : lanes) {
    sum_s += lane_s;
    longest_s = std::max(longest_s, lane_s);
  }
  if (sum_s <= 0) return;
  for (double& seconds : node_s) seconds *= longest_s / sum_s;
}

// `seconds_of`: of a node alone.
template <typename SecondsOf>
std::vector<double> WithinStep(const StepPlan& step, const SecondsOf& seconds_of) {
  const std::span<const PlannedNode> nodes(step.nodes);
  std::vector<double> node_s;
  node_s.reserve(nodes.size());
  for (const PlannedNode& node : nodes) node_s.push_back(seconds_of(node));
  for (size_t first = 0, end; first < nodes.size(); first = end) {
    const int section = nodes[first].section;
    for (end = first + 1; end < nodes.size() && nodes[end].section == section; ++end) {
    }
    if (section >= 0)
      ShareLanes(nodes.subspan(first, end - first), std::span(node_s).subspan(first, end - first));
  }
  return node_s;
}

}  // namespace

Work WorkOf(const PlannedNode& node) { return WorkOf(node.def, node.call, node.cost); }

void EstimateTimes(const CostModel& device, Program& program) {
  for (StepPlan& step : program.steps) {
    step.calibration = 1;
    for (PlannedNode& node : step.nodes) {
      const TimeEstimate estimate = device.Estimate(WorkOf(node), node.choice);
      node.modelled_s = estimate.modelled_s;
      node.measured_s = estimate.measured_s;
      node.correction = 1;
      node.bound = estimate.bound;
    }
  }
}

std::vector<double> ModelledNodeSeconds(const StepPlan& step) {
  return WithinStep(step, [](const PlannedNode& node) { return node.modelled_s; });
}

std::vector<double> PlannedNodeSeconds(const StepPlan& step) {
  return WithinStep(step, [&](const PlannedNode& node) {
    return node.measured_s.value_or(node.modelled_s * node.correction) * step.calibration;
  });
}

std::vector<double> NodeSecondsBy(const CostModel& device, const StepPlan& step) {
  return WithinStep(
      step, [&](const PlannedNode& node) { return device.Seconds(WorkOf(node), node.choice); });
}

double SumOfRuns(const StepPlan& step, const std::vector<double>& node_s) {
  double seconds = 0;
  for (size_t n = 0; n < step.nodes.size(); ++n)
    seconds += node_s[n] * static_cast<double>(RunsOf(step, step.nodes[n]));
  return seconds;
}

double ModelledSeconds(const StepPlan& step) { return SumOfRuns(step, ModelledNodeSeconds(step)); }

double PlannedSeconds(const StepPlan& step) { return SumOfRuns(step, PlannedNodeSeconds(step)); }

double RooflineSeconds(const StepPlan& step, double peak_flops_per_s, double bytes_per_s) {
  double seconds = 0;
  for (const PlannedNode& node : step.nodes) {
    const auto bytes = static_cast<double>(node.cost.bytes_read + node.cost.bytes_written);
    seconds +=
        std::max(static_cast<double>(node.cost.flops) / peak_flops_per_s, bytes / bytes_per_s) *
        static_cast<double>(RunsOf(step, node));
  }
  return seconds;
}

}  // namespace ridge
