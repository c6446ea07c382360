// The step shown is one whole step, never a sum of best nodes: only so do the parts add up.
#include "ridge/report/profile.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "ridge/lower/roofline.h"
#include "ridge/plan/cost/times.h"
#include "ridge/plan/tree_sums.h"
#include "ridge/report/profile_causes.h"

namespace ridge {
namespace {

double BytesOf(const PlannedNode& node) {
  return static_cast<double>(node.cost.bytes_read + node.cost.bytes_written);
}

DType DTypeOf(const PlannedNode& node) {
  return node.call.inputs.empty() ? DType::kF32 : node.call.inputs[0].dtype;
}

std::string LevelOf(const DeviceProfile& limits, int64_t bytes) {
  for (const MemoryLevel& level : limits.memory) {
    if (bytes <= level.capacity_bytes) return level.level;
  }
  return limits.memory.empty() ? "memory" : limits.memory.back().level;
}

// What a reorder copies.
std::string ReorderRow(const StepPlan& step, const PlannedNode& node) {
  const PlannedValue& from = step.values[static_cast<size_t>(node.inputs[0])];
  const PlannedValue& to = step.values[static_cast<size_t>(node.outputs[0])];
  const Purpose purpose = from.persistent ? from.purpose : to.purpose;
  if (purpose == Purpose::kParameters || purpose == Purpose::kOptimizer) return "of weights";
  if (purpose == Purpose::kInputs) return "of inputs";
  return purpose == Purpose::kGradients ? "of gradients" : "of activations";
}

ProfiledNode Analyze(const StepMeasurement& measured, size_t n) {
  const PlannedNode& node = measured.step->nodes[n];
  ProfiledNode result;
  result.seconds = measured.node_s[n];
  result.on_host = node.on_host;
  const auto bytes = static_cast<int64_t>(BytesOf(node));
  result.level = node.on_host ? "host" : LevelOf(measured.limits, bytes);
  if (IsTreeNode(node)) {
    result.part = ProfilePart::kMemory;
    result.row = node.op;
    return result;
  }
  if (node.def == nullptr) {
    result.part = ProfilePart::kReorder;
    result.row = ReorderRow(*measured.step, node);
    return result;
  }
  const CostClass of = node.def->cost_class;
  const bool multiplies = of == CostClass::kMatmul || of == CostClass::kConv;
  if (node.on_host) {
    result.part = multiplies ? ProfilePart::kCompute : ProfilePart::kMemory;
    result.row = node.op + " by the host";
    return result;
  }
  const double compute =
      static_cast<double>(node.cost.flops) / PeakFlopsOf(measured.limits, DTypeOf(node));
  const double memory = BytesOf(node) / BandwidthFor(measured.limits, bytes);
  result.limit_s = std::max(compute, memory) * static_cast<double>(RunsOf(*measured.step, n));
  result.part = multiplies && compute >= memory ? ProfilePart::kCompute : ProfilePart::kMemory;
  result.row = node.op;
  return result;
}

ProfileGroup NewGroup(const PlannedNode& node, const ProfiledNode& profiled) {
  ProfileGroup group;
  group.name = node.name;
  group.op = node.op;
  group.kernel = node.choice.kernel;
  group.key = node.choice.key;
  group.part = profiled.part;
  group.row = profiled.row;
  group.level = profiled.level;
  group.on_host = profiled.on_host;
  return group;
}

std::string GroupKey(const PlannedNode& node, const ProfiledNode& profiled) {
  const std::string key = node.choice.key.empty() ? node.op + " " + node.name : node.choice.key;
  return profiled.row + (node.on_host ? " host " : " ") + key;
}

void MakeGroups(StepProfile& profile) {
  std::map<std::string, int> by_key;
  std::vector<ProfileGroup> groups;
  for (size_t n = 0; n < profile.nodes.size(); ++n) {
    const PlannedNode& node = profile.measured.step->nodes[n];
    ProfiledNode& profiled = profile.nodes[n];
    const auto [found, is_new] =
        by_key.emplace(GroupKey(node, profiled), static_cast<int>(groups.size()));
    if (is_new) groups.push_back(NewGroup(node, profiled));
    ProfileGroup& group = groups[static_cast<size_t>(found->second)];
    group.nodes.push_back(static_cast<int>(n));
    group.seconds += profiled.seconds;
    group.limit_s += profiled.limit_s;
    const auto runs = static_cast<double>(RunsOf(*profile.measured.step, n));
    group.flops += runs * static_cast<double>(node.cost.flops);
    group.bytes += runs * BytesOf(node);
  }
  std::stable_sort(groups.begin(), groups.end(), [](const ProfileGroup& a, const ProfileGroup& b) {
    return a.seconds > b.seconds;
  });
  for (size_t g = 0; g < groups.size(); ++g) {
    for (const int n : groups[g].nodes)
      profile.nodes[static_cast<size_t>(n)].group = static_cast<int>(g);
  }
  profile.groups = std::move(groups);
}

void MakeRows(StepProfile& profile) {
  std::map<std::pair<ProfilePart, std::string>, ProfileRow> rows;
  for (const ProfiledNode& node : profile.nodes) {
    ProfileRow& row = rows[{node.part, node.row}];
    ++row.nodes;
    row.seconds += node.seconds;
    row.limit_s += node.limit_s;
  }
  const StepMeasurement& measured = profile.measured;
  rows[{ProfilePart::kInputWait, ""}].seconds = measured.input_wait_s;
  const double nodes_s = std::accumulate(measured.node_s.begin(), measured.node_s.end(), 0.0);
  rows[{ProfilePart::kRuntime, ""}].seconds = measured.step_s - measured.input_wait_s - nodes_s;
  for (auto& [key, row] : rows) {
    std::tie(row.part, row.name) = key;
    profile.rows.push_back(row);
  }
  std::stable_sort(profile.rows.begin(), profile.rows.end(),
                   [](const ProfileRow& a, const ProfileRow& b) {
                     return a.part != b.part ? a.part < b.part : a.seconds > b.seconds;
                   });
}

int64_t& BytesFor(Purpose purpose, LiveBytes& live) {
  switch (purpose) {
    case Purpose::kGradients:
      return live.gradients;
    case Purpose::kWorkspace:
      return live.workspace;
    default:
      return live.activations;
  }
}

}  // namespace

const char* ProfilePartName(ProfilePart part) {
  static constexpr const char* kNames[] = {"compute", "memory", "reorder", "input wait", "runtime"};
  return kNames[static_cast<size_t>(part)];
}

double PeakFlopsOf(const DeviceProfile& limits, DType dtype) {
  for (const char* name : {DTypeName(dtype), "f32"}) {
    const auto found = limits.peak_flops_per_s.find(name);
    if (found != limits.peak_flops_per_s.end() && found->second > 0) return found->second;
  }
  return 1e11;
}

StepProfile AnalyzeStep(StepMeasurement measured) {
  RIDGE_CHECK(measured.node_s.size() == measured.step->nodes.size(), "one time a node");
  StepProfile profile;
  profile.measured = std::move(measured);
  const std::vector<double> planned_s = PlannedNodeSeconds(*profile.measured.step);
  for (size_t n = 0; n < profile.measured.node_s.size(); ++n) {
    profile.nodes.push_back(Analyze(profile.measured, n));
    profile.nodes.back().planned_s = planned_s[n];
    profile.limit_s += profile.nodes.back().limit_s;
  }
  const DeviceProfile& limits = profile.measured.limits;
  const double peak = PeakFlopsOf(limits, profile.measured.operands);
  profile.flops_floor_s = profile.measured.model_flops / peak;
  profile.roofline_step_s =
      RooflineSeconds(*profile.measured.step, peak, BandwidthFor(limits, INT64_MAX));
  MakeGroups(profile);
  MakeRows(profile);
  ExplainGroups(profile);
  FindAdvice(profile);
  return profile;
}

// Begins and ends are noted where they happen and summed up once: linear in values and nodes.
std::vector<LiveBytes> LiveBytesByNode(const StepPlan& step, int64_t persistent_bytes) {
  std::vector<LiveBytes> change(step.nodes.size() + 1);
  for (const PlannedValue& value : step.values) {
    if (value.persistent || value.shares_with >= 0 || value.live.last < 0) continue;
    BytesFor(value.purpose, change[static_cast<size_t>(std::max(value.live.first, 0))]) +=
        value.size_bytes;
    const auto after = static_cast<size_t>(value.live.last) + 1;
    if (after < change.size()) BytesFor(value.purpose, change[after]) -= value.size_bytes;
  }
  std::vector<LiveBytes> live(step.nodes.size());
  LiveBytes now;
  now.persistent = persistent_bytes;
  for (size_t n = 0; n < live.size(); ++n) {
    now.activations += change[n].activations;
    now.gradients += change[n].gradients;
    now.workspace += change[n].workspace;
    live[n] = now;
    if (step.nodes[n].workspace_offset >= 0)
      live[n].workspace += step.nodes[n].choice.workspace_bytes;
  }
  return live;
}

}  // namespace ridge
