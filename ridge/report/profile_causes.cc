// Each cause is a fact of the plan, asked in order from the certain to the likely: what the kernel
// is, how much work a node has, the shape that leaves lanes empty, the layout, the memory.
// Gains are upper ends: a reorder that is not made costs nothing, a node that reaches kReachable of
// its limit costs that, and an elementwise node inside its producer costs what its other operands
// take to read.  Two changes are never counted for the same node.
#include "ridge/report/profile_causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "ridge/core/units.h"
#include "ridge/lower/roofline.h"
#include "ridge/plan/uses.h"

namespace ridge {
namespace {

constexpr double kShortNodeS = 20e-6;
constexpr double kMovesBytes = 1.0 / 3;  // below, it is not the memory that such a node waits for
constexpr int64_t kLanes = 16;
constexpr size_t kMostAdvice = 3;
constexpr double kWorthSaying = 0.002;  // of the step

struct GroupFacts {
  const StepProfile& profile;
  const ProfileGroup& group;
  const PlannedNode& node;  // the first of the group
  double each_s;
};

bool IsClass(const PlannedNode& node, CostClass of) {
  return node.def != nullptr && node.def->cost_class == of;
}

bool IsReference(const ProfileGroup& group) { return group.kernel == "reference"; }

std::string Rates(const GroupFacts& f) {
  const DeviceProfile& limits = f.profile.measured.limits;
  if (f.group.part == ProfilePart::kCompute) {
    const DType dtype = f.node.call.inputs.empty() ? DType::kF32 : f.node.call.inputs[0].dtype;
    return fmt::format("{} of {}", FormatRate(f.group.flops / f.group.seconds, "FLOP"),
                       FormatRate(PeakFlopsOf(limits, dtype), "FLOP"));
  }
  const double each = f.group.bytes / static_cast<double>(f.group.nodes.size());
  return fmt::format("{} of {}, {} that fit {}", FormatRate(f.group.bytes / f.group.seconds, "B"),
                     FormatRate(BandwidthFor(limits, static_cast<int64_t>(each)), "B"),
                     FormatBytes(static_cast<int64_t>(each)), f.group.level);
}

// Of all tensors with a channel dimension the smallest extent there; 0 when there is none.
int64_t SmallestChannels(const OpCall& call) {
  int64_t smallest = 0;
  for (const auto* types : {&call.inputs, &call.outputs}) {
    for (const TensorType& type : *types) {
      if (type.dims.size() < 3) continue;
      smallest = smallest == 0 ? type.dims[1] : std::min(smallest, type.dims[1]);
    }
  }
  return smallest;
}

bool IsDepthwise(const OpCall& call) {
  const auto found = call.attrs.find("groups");
  const auto* groups = found == call.attrs.end() ? nullptr : std::get_if<int64_t>(&found->second);
  return groups != nullptr && *groups > 1;
}

// "" when rows, columns and channels fill the vectors.
std::string NarrowShape(const GroupFacts& f) {
  const OpCall& call = f.node.call;
  if (IsClass(f.node, CostClass::kConv)) {
    if (IsDepthwise(call)) return "a convolution in groups, few products for each value read";
    const int64_t channels = SmallestChannels(call);
    if (channels > 0 && channels < kLanes)
      return fmt::format("{} channels, a vector holds {}", channels, kLanes);
  }
  if (IsClass(f.node, CostClass::kMatmul) && !call.outputs.empty() &&
      !call.outputs[0].dims.empty()) {
    const int64_t columns = std::max<int64_t>(1, call.outputs[0].dims.back());
    const int64_t rows = call.outputs[0].elements() / columns;
    if (std::min(rows, columns) < 2 * kLanes)
      return fmt::format("a product of {} x {}: few rows", rows, columns);
  }
  return "";
}

// Row-major images in a step whose convolutions have a layout of their own.
bool IsRowMajorImage(const GroupFacts& f) {
  const auto is_image = [](const PlannedValue& value) {
    return !value.persistent && value.type.dims.size() >= 4;
  };
  const std::vector<PlannedValue>& values = f.profile.measured.step->values;
  const int first = f.node.inputs.empty() ? -1 : f.node.inputs[0];
  if (first < 0) return false;
  const PlannedValue& own = values[static_cast<size_t>(first)];
  if (!is_image(own) || own.layout != kRowMajor) return false;
  return std::any_of(values.begin(), values.end(), [&](const PlannedValue& value) {
    return is_image(value) && value.layout != kRowMajor;
  });
}

// The best kernel that declined; one for another dtype does not count.
std::string Refusals(const PlannedNode& node) {
  for (const KernelRefusal& refusal : node.refusals) {
    if (refusal.reason == "dtype") continue;
    return fmt::format("; {} declined: {}", refusal.kernel, refusal.reason);
  }
  return "";
}

std::pair<std::string, std::string> Explain(const GroupFacts& f) {
  const ProfileGroup& group = f.group;
  if (group.part == ProfilePart::kReorder)
    return {"reorder " + group.row, "copied from one kernel's layout into another's each step"};
  if (IsReference(group)) return {"reference kernel", "the slow, plain kernel" + Refusals(f.node)};
  if (f.each_s < kShortNodeS)
    return {"short", fmt::format("{} a node: starting it costs as much as the work",
                                 FormatSeconds(f.each_s))};
  if (const std::string shape = NarrowShape(f); !shape.empty())
    return {"narrow", Rates(f) + "; " + shape};
  if (IsRowMajorImage(f))
    return {"row-major", Rates(f) + "; row-major among blocked layouts" + Refusals(f.node)};
  const bool moves = group.part == ProfilePart::kMemory && group.share_of_limit() > kMovesBytes;
  return {moves ? "memory traffic" : "slow kernel", Rates(f) + Refusals(f.node)};
}

// --- What would help -----------------------------------------------------------------------

struct Candidate {
  std::string what, how;
  double gain_s = 0;
  std::set<int> nodes;
};

using Candidates = std::map<std::string, Candidate>;

// What an elementwise node would save inside the node that makes its largest operand, if nothing
// else reads that; 0 when something does.
double FusionGain(const StepPlan& step, const StepUses& uses, size_t n, double seconds) {
  const PlannedNode& node = step.nodes[n];
  double bytes = static_cast<double>(node.cost.bytes_read + node.cost.bytes_written);
  double largest = 0;
  int source = -1;
  for (const int input : node.inputs) {
    if (input < 0) continue;
    const PlannedValue& value = step.values[static_cast<size_t>(input)];
    if (value.persistent || static_cast<double>(value.size_bytes) <= largest) continue;
    largest = static_cast<double>(value.size_bytes);
    source = input;
  }
  if (source < 0 || bytes <= 0 || uses.ReadsOf(source).size() > 1) return 0;
  const double others = std::max(0.0, static_cast<double>(node.cost.bytes_read) - largest);
  return seconds * (1 - others / bytes);
}

void AddTo(Candidates& all, const std::string& key, const std::string& what, const std::string& how,
           double gain_s, int node) {
  Candidate& candidate = all[key];
  candidate.what = what;
  if (candidate.how.empty()) candidate.how = how;
  candidate.gain_s += gain_s;
  candidate.nodes.insert(node);
}

std::string HowFor(const std::string& cause) {
  if (cause == "row-major") return "in the layout of its neighbours";
  if (cause == "reference kernel") return "with a kernel of its own";
  if (cause == "short") return "joined with its neighbours";
  if (cause == "narrow") return "with a kernel for this shape";
  if (cause == "memory traffic") return "at the rate of its memory";
  return "at the rate of a good kernel";
}

void AddReorder(const StepProfile& profile, const ProfileGroup& group, Candidates& all) {
  const char* how = group.row == "of weights" ? "kept in the kernels' layout from step to step"
                                              : "with neighbours that agree on one layout";
  for (const int n : group.nodes) {
    AddTo(all, "reorder " + group.row, "reorders " + group.row, how,
          profile.nodes[static_cast<size_t>(n)].seconds, n);
  }
}

void AddSlow(const StepProfile& profile, const ProfileGroup& group, Candidates& all) {
  if (group.cause.empty()) return;
  for (const int n : group.nodes) {
    const ProfiledNode& node = profile.nodes[static_cast<size_t>(n)];
    const double gain = std::max(0.0, node.seconds - node.limit_s / kReachable);
    const bool reference = group.cause == "reference kernel";
    AddTo(all, group.op + " " + group.cause, fmt::format("{} ({})", group.op, group.cause),
          HowFor(group.cause) + (reference || group.cause == "short" ? "" : ": " + group.why), gain,
          n);
  }
}

void AddFusions(const StepProfile& profile, Candidates& all) {
  const StepPlan& step = *profile.measured.step;
  const StepUses uses(step);
  for (size_t n = 0; n < step.nodes.size(); ++n) {
    if (!IsClass(step.nodes[n], CostClass::kElementwise)) continue;
    const double gain = FusionGain(step, uses, n, profile.nodes[n].seconds);
    if (gain <= 0) continue;
    AddTo(all, "fuse " + step.nodes[n].op, step.nodes[n].op + " as a node of its own",
          "inside the node before it, which saves a trip through memory", gain,
          static_cast<int>(n));
  }
}

// The part of a gain whose nodes are not taken yet.
double FreshShare(const Candidate& candidate, const std::set<int>& taken) {
  const auto fresh = std::count_if(candidate.nodes.begin(), candidate.nodes.end(),
                                   [&](int n) { return taken.count(n) == 0; });
  return static_cast<double>(fresh) / static_cast<double>(candidate.nodes.size());
}

}  // namespace

void ExplainGroups(StepProfile& profile) {
  for (ProfileGroup& group : profile.groups) {
    if (group.on_host || group.seconds <= 0 || group.share_of_limit() >= kFarFromLimit) continue;
    const auto first = static_cast<size_t>(group.nodes.front());
    const GroupFacts facts{profile, group, profile.measured.step->nodes[first],
                           group.seconds / static_cast<double>(group.nodes.size())};
    std::tie(group.cause, group.why) = Explain(facts);
  }
}

void FindAdvice(StepProfile& profile) {
  Candidates all;
  for (const ProfileGroup& group : profile.groups) {
    if (group.part == ProfilePart::kReorder) {
      AddReorder(profile, group, all);
    } else {
      AddSlow(profile, group, all);
    }
  }
  AddFusions(profile, all);
  const StepMeasurement& measured = profile.measured;
  std::vector<Candidate> ranked;
  for (auto& [key, candidate] : all) ranked.push_back(std::move(candidate));
  ranked.push_back({"waiting for input",
                    "with data that are cheaper to prepare, or cached",
                    measured.input_wait_s,
                    {}});
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const Candidate& a, const Candidate& b) { return a.gain_s > b.gain_s; });
  std::set<int> taken;
  for (const Candidate& candidate : ranked) {
    if (profile.advice.size() == kMostAdvice) break;
    if (candidate.gain_s < kWorthSaying * measured.step_s) break;
    if (!candidate.nodes.empty() && FreshShare(candidate, taken) < 0.5) continue;
    taken.insert(candidate.nodes.begin(), candidate.nodes.end());
    profile.advice.push_back({candidate.gain_s, candidate.what, candidate.how,
                              static_cast<int>(candidate.nodes.size())});
  }
}

}  // namespace ridge
