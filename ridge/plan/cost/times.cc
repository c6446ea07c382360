#include "ridge/plan/cost/times.h"

#include <algorithm>
#include <numeric>

#include "ridge/plan/cost/host_link.h"

namespace ridge {
namespace {

// Scales the seconds of a parallel region's nodes to those of its longest stream.
void ShareStreams(const Region& parallel, std::vector<double>& node_s) {
  double sum_s = 0, longest_s = 0;
  for (const Region& stream : parallel.parts) {
    const double stream_s =
        std::accumulate(node_s.begin() + stream.first, node_s.begin() + stream.end, 0.0);
    sum_s += stream_s;
    longest_s = std::max(longest_s, stream_s);
  }
  if (sum_s <= 0) return;
  for (int n = parallel.first; n < parallel.end; ++n)
    node_s[static_cast<size_t>(n)] *= longest_s / sum_s;
}

// `seconds_of`: of a node alone.
template <typename SecondsOf>
std::vector<double> WithinStep(const StepPlan& step, const SecondsOf& seconds_of) {
  std::vector<double> node_s;
  node_s.reserve(step.nodes.size());
  for (const PlannedNode& node : step.nodes) node_s.push_back(seconds_of(node));
  ForEachRegion(step.body, [&](const Region& region) {
    if (region.kind == Region::Kind::kParallel) ShareStreams(region, node_s);
  });
  return node_s;
}

// That the bytes of a run take which it reads or writes in the host's memory.
double LinkSecondsOf(const Program& program, const StepPlan& step, const PlannedNode& node) {
  if (program.host_link_bytes_per_s <= 0) return 0;
  const LinkBytes bytes = LinkBytesOf(program, step, node);
  return LinkSeconds(static_cast<double>(bytes.to_device), static_cast<double>(bytes.to_host),
                     program.host_link_bytes_per_s);
}

// A kernel that reaches the host's memory is no faster than the link.
void ReachHost(const Program& program, const StepPlan& step, PlannedNode& node) {
  const double link_s = LinkSecondsOf(program, step, node);
  if (link_s <= node.modelled_s) return;
  node.modelled_s = link_s;
  node.bound = Bound::kMemory;
}

}  // namespace

Work WorkOf(const PlannedNode& node) { return WorkOf(node.def, node.call, node.cost); }

void EstimateTimes(const CostModel& device, Program& program) {
  for (StepPlan& step : program.steps) {
    step.calibration = 1;
    for (PlannedNode& node : step.nodes) {
      const TimeEstimate estimate = device.Estimate(WorkOf(node), node.choice);
      node.measured_s = estimate.measured_s;
      node.correction = 1;
      if (node.on_host) continue;  // modelled where it was chosen (lower.cc)
      node.modelled_s = estimate.modelled_s;
      node.bound = estimate.bound;
      ReachHost(program, step, node);
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

std::vector<double> NodeSecondsBy(const CostModel& device, const Program& program,
                                  const StepPlan& step) {
  return WithinStep(step, [&](const PlannedNode& node) {
    if (node.on_host) return node.modelled_s;
    const double seconds = device.Seconds(WorkOf(node), node.choice);
    return node.def != nullptr ? seconds : std::max(seconds, LinkSecondsOf(program, step, node));
  });
}

double SumOfRuns(const StepPlan& step, const std::vector<double>& node_s) {
  double seconds = 0;
  for (size_t n = 0; n < step.nodes.size(); ++n)
    seconds += node_s[n] * static_cast<double>(RunsOf(step, n));
  return seconds;
}

double ModelledSeconds(const StepPlan& step) { return SumOfRuns(step, ModelledNodeSeconds(step)); }

double PlannedSeconds(const StepPlan& step) { return SumOfRuns(step, PlannedNodeSeconds(step)); }

double RooflineSeconds(const StepPlan& step, double peak_flops_per_s, double bytes_per_s) {
  double seconds = 0;
  for (size_t n = 0; n < step.nodes.size(); ++n) {
    const PlannedNode& node = step.nodes[n];
    const auto bytes = static_cast<double>(node.cost.bytes_read + node.cost.bytes_written);
    seconds +=
        std::max(static_cast<double>(node.cost.flops) / peak_flops_per_s, bytes / bytes_per_s) *
        static_cast<double>(RunsOf(step, n));
  }
  return seconds;
}

}  // namespace ridge
