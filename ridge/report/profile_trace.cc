// Node times are laid end to end: a step has one stream.
#include <array>

#include "ridge/observe/trace.h"
#include "ridge/report/profile.h"

namespace ridge {
namespace {

constexpr TraceTrack kNodes = {0, 1};
constexpr TraceTrack kStep = {0, 0};

Status AddNode(const StepProfile& profile, size_t n, double start_s, TraceWriter& trace) {
  const PlannedNode& node = profile.measured.step->nodes[n];
  const ProfiledNode& profiled = profile.nodes[n];
  const ProfileGroup& group = profile.groups[static_cast<size_t>(profiled.group)];
  const int64_t runs = RunsOf(*profile.measured.step, n);
  const double share = profiled.seconds > 0 ? profiled.limit_s / profiled.seconds : 0;
  const std::array<TraceArg, 8> args = {
      TraceArg{"operator", std::string_view(node.op)},
      TraceArg{"kernel", std::string_view(node.choice.kernel)},
      TraceArg{"flops", runs * node.cost.flops},
      TraceArg{"bytes", runs * (node.cost.bytes_read + node.cost.bytes_written)},
      TraceArg{"share_of_limit", share},
      TraceArg{"planned_s", profiled.planned_s},
      TraceArg{"memory_level", std::string_view(profiled.level)},
      TraceArg{"why", std::string_view(group.why)}};
  return trace.AddSpan({node.name, node.op, kNodes, start_s, profiled.seconds, args});
}

Status AddLive(const LiveBytes& live, double time_s, TraceWriter& trace) {
  const std::array<TraceSeries, 4> series = {
      TraceSeries{"persistent", static_cast<double>(live.persistent)},
      TraceSeries{"activations", static_cast<double>(live.activations)},
      TraceSeries{"gradients", static_cast<double>(live.gradients)},
      TraceSeries{"workspace", static_cast<double>(live.workspace)}};
  return trace.AddCounter("arena bytes in use", /*pid=*/0, time_s, series);
}

Status AddRate(const PlannedNode& node, double seconds, double time_s, TraceWriter& trace) {
  const double rate = seconds > 0 ? static_cast<double>(node.cost.flops) / seconds / 1e9 : 0;
  const std::array<TraceSeries, 1> series = {TraceSeries{"GFLOP/s", rate}};
  return trace.AddCounter("GFLOP/s", /*pid=*/0, time_s, series);
}

Status AddEverything(const StepProfile& profile, TraceWriter& trace) {
  RIDGE_RETURN_IF_ERROR(trace.NameProcess(0, "ridge profile"));
  RIDGE_RETURN_IF_ERROR(trace.NameThread(kStep, "step", 0));
  RIDGE_RETURN_IF_ERROR(trace.NameThread(kNodes, "nodes", 1));
  const StepMeasurement& measured = profile.measured;
  RIDGE_RETURN_IF_ERROR(trace.AddSpan({"step", "step", kStep, 0, measured.step_s, {}}));
  if (measured.input_wait_s > 0) {
    RIDGE_RETURN_IF_ERROR(
        trace.AddSpan({"input wait", "input", kNodes, 0, measured.input_wait_s, {}}));
  }
  const std::vector<LiveBytes> live = LiveBytesByNode(*measured.step, measured.persistent_bytes);
  double at = measured.input_wait_s;
  for (size_t n = 0; n < profile.nodes.size(); ++n) {
    const double seconds = profile.nodes[n].seconds;
    RIDGE_RETURN_IF_ERROR(AddNode(profile, n, at, trace));
    RIDGE_RETURN_IF_ERROR(AddLive(live[n], at, trace));
    RIDGE_RETURN_IF_ERROR(AddRate(measured.step->nodes[n], seconds, at, trace));
    at += seconds;
  }
  LiveBytes after;
  after.persistent = measured.persistent_bytes;
  return AddLive(after, at, trace);
}

}  // namespace

Status WriteProfileTrace(const StepProfile& profile, const std::string& path) {
  RIDGE_ASSIGN_OR_RETURN(const std::unique_ptr<TraceWriter> trace, TraceWriter::Create(path));
  RIDGE_RETURN_IF_ERROR(AddEverything(profile, *trace));
  return trace->Close();
}

}  // namespace ridge
