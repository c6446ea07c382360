// Every value that is live at the peak and read before and after it is a candidate.  Recomputing it
// needs its inputs: those that later nodes read are resident anyway, cheap ones are recomputed too,
// and all others have to be kept.  A candidate that keeps more bytes than it frees is dropped.
//
// The cost of recomputing: its sources are read from memory, since they were touched long ago; the
// result is written to memory; a pointwise operator computes in its own loop; and products and
// convolutions take what they took before.  A value between two steps of a chain costs nothing if
// one kernel computes both.
#include "ridge/plan/search/recompute_facts.h"

#include <algorithm>

#include "ridge/graph/uses.h"
#include "ridge/lower/kernel_query.h"
#include "ridge/lower/recompute.h"
#include "ridge/plan/memory/live_curve.h"
#include "ridge/plan/schedule.h"

namespace ridge {
namespace {

constexpr int kMostSteps = 8;  // recomputed for one value
// A value must free at least 1 / kLeastShare of the bytes at the peak.
constexpr int64_t kLeastShare = 2000;

int64_t FlopsOf(const Graph& graph, const Node& node) {
  return CallCost(*node.op, graph.Call(node)).flops;
}

bool IsProduct(const OpDef& op) {
  return op.cost_class == CostClass::kMatmul || op.cost_class == CostClass::kConv;
}

}  // namespace

RecomputeFacts::RecomputeFacts(const Graph& graph, const CostModel& nominal)
    : graph_(graph),
      nominal_(nominal),
      device_(nominal.facts()),
      order_(ScheduleNodes(graph)),
      roots_(ViewRoots(graph)),
      first_(graph.values().size(), -1),
      last_(first_),
      last_early_(first_),
      first_late_(graph.values().size(), static_cast<int>(order_.size())),
      late_(graph.nodes().size(), false),
      is_update_(graph.values().size(), false),
      first_late_node_(graph.values().size(), static_cast<NodeId>(graph.nodes().size())),
      updated_by_(first_late_node_) {
  for (const GraphUpdate& update : graph.updates()) {
    is_update_[static_cast<size_t>(RootOf(update.value))] = true;
    const NodeId producer = graph.value(update.value).producer;
    if (producer >= 0) updated_by_[static_cast<size_t>(update.variable)] = producer;
  }
  MeasureLives();
  FindPeak();
  MarkReaders();
}

void RecomputeFacts::MeasureLives() {
  for (size_t at = 0; at < order_.size(); ++at) {
    const Node& node = graph_.node(order_[at]);
    const auto touch = [&](ValueId id) {
      if (id == kNoValue) return;
      const auto root = static_cast<size_t>(RootOf(id));
      if (first_[root] < 0) first_[root] = static_cast<int>(at);
      last_[root] = static_cast<int>(at);
    };
    for (ValueId id : node.inputs) touch(id);
    for (ValueId id : node.outputs) touch(id);
  }
  const auto keep = [&](ValueId id) { last_[static_cast<size_t>(RootOf(id))] = places(); };
  for (const GraphOutput& output : graph_.outputs()) keep(output.value);
  for (const GraphUpdate& update : graph_.updates()) keep(update.value);
}

void RecomputeFacts::FindPeak() {
  LiveCurve curve(std::max(1, places()));
  for (size_t v = 0; v < first_.size(); ++v) {
    const auto id = static_cast<ValueId>(v);
    if (first_[v] >= 0 && IsScratch(id)) curve.Add(first_[v], last_[v], Bytes(id));
  }
  peak_ = curve.peak_step();
  peak_bytes_ = curve.peak_bytes();
}

void RecomputeFacts::MarkReaders() {
  for (int at = 0; at < places(); ++at) {
    const NodeId n = order_[static_cast<size_t>(at)];
    late_[static_cast<size_t>(n)] = at > peak_;
    for (ValueId id : graph_.node(n).inputs) {
      if (id == kNoValue) continue;
      const auto root = static_cast<size_t>(RootOf(id));
      if (at <= peak_) {
        last_early_[root] = at;
      } else {
        first_late_[root] = std::min(first_late_[root], at);
        first_late_node_[root] = std::min(first_late_node_[root], n);
      }
    }
  }
  for (size_t v = 0; v < first_.size(); ++v) last_early_[v] = std::max(last_early_[v], first_[v]);
}

bool RecomputeFacts::IsResident(ValueId id) const {
  const ValueId root = RootOf(id);
  return !IsScratch(root) || first_late(root) < places() || last(root) == places();
}

std::vector<RematCandidate> RecomputeFacts::Candidates(bool expensive) const {
  std::vector<RematCandidate> all;
  for (size_t v = 0; v < first_.size(); ++v) {
    const auto id = static_cast<ValueId>(v);
    if (!MayBeCandidate(id)) continue;
    std::optional<RematCandidate> candidate;
    if (IsCheapToRematerialize(graph_, id)) candidate = CandidateOf(id, /*expensive=*/false);
    if (!candidate && expensive) candidate = CandidateOf(id, expensive);
    if (candidate) all.push_back(*std::move(candidate));
  }
  return all;
}

bool RecomputeFacts::MayBeCandidate(ValueId root) const {
  return MayRematerialize(graph_, root) && RootOf(root) == root && first_late(root) < places() &&
         first(root) < peak_ && last(root) < places() && Bytes(root) >= peak_bytes_ / kLeastShare &&
         graph_.value(root).role != ValueRole::kGradient;
}

std::optional<RematCandidate> RecomputeFacts::CandidateOf(ValueId root, bool expensive) const {
  RematCandidate candidate;
  candidate.value = root;
  candidate.expensive = expensive;
  AddStep(root, candidate);
  candidate.seconds += Seconds(Bytes(root));
  if (candidate.steps > kMostSteps || candidate.kept_bytes >= Bytes(root) || candidate.is_late)
    return std::nullopt;
  return candidate;
}

bool RecomputeFacts::IsRecomputedFor(const RematCandidate& candidate, ValueId input) const {
  if (IsResident(input)) return false;
  return candidate.expensive ? MayRematerialize(graph_, input)
                             : IsCheapToRematerialize(graph_, input);
}

// Adds the cost and the inputs of recomputing `id`.
void RecomputeFacts::AddStep(ValueId id, RematCandidate& candidate) const {
  if (++candidate.steps > kMostSteps) return;
  candidate.seconds += StepSeconds(id);
  for (ValueId input : RematInputs(graph_, id)) {
    if (input == kNoValue) continue;
    const NodeId copied_before = first_late_node_[static_cast<size_t>(candidate.value)];
    if (updated_by_[static_cast<size_t>(input)] <= copied_before) candidate.is_late = true;
    if (IsRecomputedFor(candidate, input)) {
      candidate.seconds += PassedOnSeconds(input, id);
      AddStep(input, candidate);
    } else {
      AddSource(RootOf(input), candidate);
    }
  }
}

void RecomputeFacts::AddSource(ValueId root, RematCandidate& candidate) const {
  const auto end = candidate.sources.end();
  if (std::find(candidate.sources.begin(), end, root) != end) return;
  candidate.sources.push_back(root);
  candidate.seconds += Seconds(Bytes(root));
  if (!IsResident(root)) candidate.kept_bytes += Bytes(root);
}

double RecomputeFacts::StepSeconds(ValueId id) const {
  const Node& node = *graph_.producer(id);
  if (node.op->alias_input >= 0) return 0;
  if (IsProduct(*node.op)) {
    const OpCall call = graph_.Call(node);
    return nominal_.Seconds(WorkOf(node.op, call, CallCost(*node.op, call)), KernelChoice());
  }
  if (node.op->elementwise == nullptr) return device_.launch_s;
  return device_.launch_s +
         static_cast<double>(FlopsOf(graph_, node)) / device_.pointwise_flops_per_s;
}

// Seconds to write and read a value between two kernels; 0 if both are fused: pointwise operators
// with each other, and an operator with one operation per element with a norm.
double RecomputeFacts::PassedOnSeconds(ValueId id, ValueId reader) const {
  const Node& from = *graph_.producer(id);
  const Node& to = *graph_.producer(reader);
  if (from.op->alias_input >= 0 || to.op->alias_input >= 0) return 0;
  const bool light =
      to.op->elementwise != nullptr && FlopsOf(graph_, to) <= graph_.type(reader).elements();
  const bool fused = to.op->elementwise != nullptr && from.op->elementwise != nullptr;
  if (fused || (light && from.op->cost_class == CostClass::kNorm)) return 0;
  return 2 * Seconds(Bytes(id));
}

}  // namespace ridge
