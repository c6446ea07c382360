// Propagates the batch along the operators' axes (axes.h) from the inputs to the loss.
// A value with a sample axis can be cut into equal parts along it, and each part depends only on
// the same part of every input.  A rule may refuse a call that could be cut, but never accepts one
// that could not, so an extent that equals the batch by chance does no harm.
#include "ridge/graph/batch_axis.h"

#include <fmt/format.h>

#include <algorithm>

#include "ridge/graph/axes.h"
#include "ridge/graph/reach.h"

namespace ridge {
namespace {

constexpr int kCoupled = -5;

bool IsPartial(int axis) { return axis == kPartialMean || axis == kPartialSum; }

// One call, and where the samples are in its inputs.
struct SampleCall {
  const OpDef& op;
  const OpCall& call;
  std::span<const int> inputs;
  int64_t batch;

  bool All(bool (*test)(int)) const { return std::all_of(inputs.begin(), inputs.end(), test); }
  bool WithoutSamples() const {
    return All([](int axis) { return axis == kReplicated; });
  }
};

// Of an input that is a mean or a sum: mean(x) + c = mean(x + c), but sums add up with sums only.
int PartialAfter(const SampleCall& s) {
  const auto is_partial = std::count_if(s.inputs.begin(), s.inputs.end(), IsPartial);
  const int first = *std::find_if(s.inputs.begin(), s.inputs.end(), IsPartial);
  const auto others_whole = static_cast<size_t>(std::count(s.inputs.begin(), s.inputs.end(),
                                                           kReplicated)) == s.inputs.size() - 1;
  if (!IsFloat(s.call.outputs[0].dtype)) return kCoupled;
  switch (s.op.linear) {
    case Linear::kNo:
      return kCoupled;
    case Linear::kFirst:
      return others_whole && IsPartial(s.inputs[0]) ? first : kCoupled;
    case Linear::kEach:
      return others_whole && is_partial == 1 ? first : kCoupled;
    case Linear::kJointly:
      break;
  }
  if (s.All([](int axis) { return axis == kPartialSum; })) return kPartialSum;
  const bool mean = s.All([](int axis) { return axis == kPartialMean || axis == kReplicated; });
  return mean ? kPartialMean : kCoupled;
}

// Whether the samples of each input are along its dimension of the factor, and an input without
// samples is the same for all of them.
bool FactorHolds(const SampleCall& s, const Factor& factor) {
  for (size_t i = 0; i < s.inputs.size(); ++i) {
    const int axis = factor.inputs[i];
    if (s.inputs[i] != kReplicated && s.inputs[i] != axis) return false;
    if (s.inputs[i] == kReplicated && axis != Factor::kNone &&
        s.call.inputs[i].dims[static_cast<size_t>(axis)] != 1)
      return false;
  }
  return factor.offset_attr == nullptr;
}

// Whether the output's dimension consists of whole samples: numbers are drawn for one sample a row,
// and what comes from no input has one row a sample.
bool HoldsSamples(const SampleCall& s, const Factor& factor) {
  const bool one_row = s.op.draws || s.WithoutSamples();
  for (size_t k = 0; k < factor.outputs.size(); ++k) {
    const int64_t extent = s.call.outputs[k].dims[static_cast<size_t>(factor.outputs[k])];
    if (one_row ? extent != s.batch : extent % s.batch != 0) return false;
  }
  return true;
}

bool ComesFromNoInput(const Factor& factor) {
  return std::all_of(factor.inputs.begin(), factor.inputs.end(),
                     [](int axis) { return axis == Factor::kNone; });
}

class Walk {
 public:
  Walk(const Graph& graph, const std::vector<ValueId>& samples, SliceOrder order)
      : graph_(graph),
        in_step_(order == SliceOrder::kInStep),
        batch_(graph.type(samples[0]).dims[0]),
        found_{std::vector<int>(graph.values().size(), kReplicated), {}, {}},
        from_inputs_(graph.values().size(), false),
        culprit_(graph.values().size(), -1) {
    for (ValueId id : samples) {
      found_.axes[static_cast<size_t>(id)] = 0;
      from_inputs_[static_cast<size_t>(id)] = true;
    }
    for (ValueId id : graph.ValuesOfKind(ValueKind::kConstant))
      from_inputs_[static_cast<size_t>(id)] = true;
    for (size_t n = 0; n < graph.nodes().size(); ++n) Visit(static_cast<NodeId>(n));
  }

  int axis(ValueId id) const { return found_.axes[static_cast<size_t>(id)]; }
  NodeId culprit(ValueId id) const { return culprit_[static_cast<size_t>(id)]; }
  bool runs_in_step() const { return !found_.in_step.empty(); }
  BatchAxes Take() { return std::move(found_); }

 private:
  void Visit(NodeId n) {
    const Node& node = graph_.node(n);
    std::vector<int> inputs;
    for (ValueId id : node.inputs) inputs.push_back(id == kNoValue ? kReplicated : axis(id));
    std::vector<int> outputs = Propagate(node, inputs);
    if (outputs.empty()) outputs = PropagateInStep(n, inputs);
    if (outputs.empty()) outputs = PropagateWhole(n, inputs);
    const NodeId culprit = outputs.empty() ? Culprit(n) : -1;
    const bool from_inputs = std::all_of(
        node.inputs.begin(), node.inputs.end(),
        [this](ValueId id) { return id == kNoValue || from_inputs_[static_cast<size_t>(id)]; });
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      const auto id = static_cast<size_t>(node.outputs[k]);
      found_.axes[id] = outputs.empty() ? kCoupled : outputs[k];
      from_inputs_[id] = from_inputs;
      culprit_[id] = culprit;
    }
  }

  // Of the inputs that are coupled already, the first one's; else this node.
  NodeId Culprit(NodeId n) const {
    for (ValueId id : graph_.node(n).inputs) {
      if (id != kNoValue && axis(id) == kCoupled) return culprit(id);
    }
    return n;
  }

  // Empty when the node couples samples.
  std::vector<int> Propagate(const Node& node, const std::vector<int>& inputs) const {
    if (std::find(inputs.begin(), inputs.end(), kCoupled) != inputs.end()) return {};
    return BatchAxesAfter(*node.op, graph_.Call(node), inputs, batch_);
  }

  // Of an operator that couples samples over slices in step.
  std::vector<int> PropagateInStep(NodeId n, const std::vector<int>& inputs) {
    const Node& node = graph_.node(n);
    if (!in_step_ || node.op->slices_attr == nullptr || inputs[0] != 0 ||
        graph_.type(node.inputs[0]).dims[0] % batch_ != 0)
      return {};
    for (size_t i = 1; i < inputs.size(); ++i) {
      const bool of_samples = node.inputs[i] != kNoValue &&
                              graph_.type(node.inputs[i]).dims == graph_.type(node.inputs[0]).dims;
      if (inputs[i] != (of_samples ? 0 : kReplicated)) return {};
    }
    found_.in_step.insert(n);
    std::vector<int> outputs(node.outputs.size(), kReplicated);
    outputs[0] = 0;
    return outputs;
  }

  // The rule's answer if values that depend only on inputs are computed for the whole batch.
  std::vector<int> PropagateWhole(NodeId n, std::vector<int> inputs) {
    const Node& node = graph_.node(n);
    std::vector<size_t> whole;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] >= kReplicated || !from_inputs_[static_cast<size_t>(node.inputs[i])]) continue;
      inputs[i] = kReplicated;
      whole.push_back(i);
    }
    if (whole.empty()) return {};
    std::vector<int> outputs = Propagate(node, inputs);
    if (!outputs.empty()) found_.whole[n] = std::move(whole);
    return outputs;
  }

  const Graph& graph_;
  const bool in_step_;
  const int64_t batch_;
  BatchAxes found_;
  std::vector<bool> from_inputs_;  // by value: depends only on inputs and constants
  std::vector<NodeId> culprit_;    // of coupled values: the node where it began
};

Status NotSliceable(const Graph& graph, const std::string& why) {
  return Status(ErrorCode::kUnsupported,
                fmt::format("{}: a batch can't be cut into slices: {}", graph.name, why));
}

class Slicer {
 public:
  Slicer(const Graph& from, const BatchAxes& samples, int64_t slices)
      : from_(from),
        axes_(samples.axes),
        whole_(samples.whole),
        in_step_(samples.in_step),
        slices_(slices),
        map_(from.values().size(), kNoValue),
        whole_map_(from.values().size(), kNoValue) {
    to_.name = from.name;
    to_.Reserve(from.values().size());
  }

  Result<Graph> Run() {
    std::vector<ValueId> roots = OutputValues(from_);
    for (const GraphUpdate& update : from_.updates()) roots.push_back(update.value);
    const std::vector<bool> needed = ProducersOf(from_, Ancestors(from_, roots));
    for (size_t v = 0; v < from_.values().size(); ++v) {
      const ValueInfo& info = from_.values()[v];
      if (info.kind != ValueKind::kResult) {
        CopyLeaf(static_cast<ValueId>(v));
      } else if (info.output_index == 0 && needed[static_cast<size_t>(info.producer)]) {
        RIDGE_RETURN_IF_ERROR(CopyNode(info.producer));
      }
    }
    for (const GraphOutput& output : from_.outputs())
      to_.AddOutput(output.name, Mapped(output.value));
    for (const GraphUpdate& update : from_.updates())
      to_.AddUpdate(Mapped(update.variable), Mapped(update.value));
    return std::move(to_);
  }

 private:
  ValueId Mapped(ValueId id) const {
    return id == kNoValue ? kNoValue : map_[static_cast<size_t>(id)];
  }

  TensorType Sliced(ValueId id) const {
    TensorType type = from_.type(id);
    const int axis = axes_[static_cast<size_t>(id)];
    if (axis >= 0) type.dims[static_cast<size_t>(axis)] /= slices_;
    return type;
  }

  void CopyLeaf(ValueId id) {
    ValueInfo leaf = from_.value(id);
    if (leaf.kind == ValueKind::kInput) leaf.type = Sliced(id);
    map_[static_cast<size_t>(id)] = to_.AddLeaf(std::move(leaf));
  }

  // The value as it is for the whole batch.  What it needs is copied once, without recursion: a
  // chain is as long as its file makes it.
  Result<ValueId> Whole(ValueId id) {
    std::vector<ValueId> open = {id};
    while (!open.empty()) {
      const ValueId now = open.back();
      const size_t before = open.size();
      if (!IsKnownWhole(now)) OpenInputs(now, open);
      if (open.size() != before) continue;
      open.pop_back();
      if (!IsKnownWhole(now)) RIDGE_RETURN_IF_ERROR(CopyWhole(now));
    }
    return WholeOf(id);
  }

  bool IsKnownWhole(ValueId id) const { return id == kNoValue || WholeOf(id) != kNoValue; }
  ValueId WholeOf(ValueId id) const {
    return id == kNoValue ? kNoValue : whole_map_[static_cast<size_t>(id)];
  }

  void OpenInputs(ValueId id, std::vector<ValueId>& open) const {
    const Node* node = from_.producer(id);
    if (node == nullptr) return;
    for (ValueId input : node->inputs) {
      if (!IsKnownWhole(input)) open.push_back(input);
    }
  }

  // REQUIRES: the inputs of its node are known.
  Status CopyWhole(ValueId id) {
    const ValueInfo& info = from_.value(id);
    ValueId& whole = whole_map_[static_cast<size_t>(id)];
    if (info.kind != ValueKind::kResult) {
      const bool cut = info.kind == ValueKind::kInput && axes_[static_cast<size_t>(id)] >= 0;
      whole = cut ? to_.AddInput(kWholePrefix + info.name, info.type) : Mapped(id);
      return Status();
    }
    const Node& node = *from_.producer(id);
    std::vector<ValueId> inputs;
    for (ValueId input : node.inputs) inputs.push_back(WholeOf(input));
    RIDGE_ASSIGN_OR_RETURN(const NodeId copy,
                           to_.AddNode(*node.op, std::move(inputs), node.attrs,
                                       {to_.UniqueName(info.name + ".whole")}, node.location));
    for (size_t k = 0; k < node.outputs.size(); ++k)
      whole_map_[static_cast<size_t>(node.outputs[k])] = to_.node(copy).outputs[k];
    return Status();
  }

  Status MapInputs(NodeId n, std::vector<ValueId>& inputs) {
    for (ValueId id : from_.node(n).inputs) inputs.push_back(Mapped(id));
    const auto whole = whole_.find(n);
    if (whole == whole_.end()) return Status();
    for (size_t i : whole->second) {
      RIDGE_ASSIGN_OR_RETURN(inputs[i], Whole(from_.node(n).inputs[i]));
    }
    return Status();
  }

  Status CopyNode(NodeId n) {
    const Node& node = from_.node(n);
    std::vector<ValueId> inputs;
    RIDGE_RETURN_IF_ERROR(MapInputs(n, inputs));
    AttrMap attrs = node.attrs;
    const char* dims = node.op->dims_attr;
    if (dims != nullptr && axes_[static_cast<size_t>(node.outputs[0])] >= 0)
      attrs[dims] = Sliced(node.outputs[0]).dims;
    if (in_step_.contains(n)) attrs[node.op->slices_attr] = slices_;
    std::vector<std::string> names;
    for (ValueId id : node.outputs) names.push_back(from_.value(id).name);
    RIDGE_ASSIGN_OR_RETURN(const NodeId id,
                           to_.AddNode(*node.op, std::move(inputs), std::move(attrs),
                                       std::move(names), node.location));
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      const ValueId copy = to_.node(id).outputs[k];
      map_[static_cast<size_t>(node.outputs[k])] = copy;
      to_.mutable_value(copy).role = from_.value(node.outputs[k]).role;
      if (to_.type(copy) == Sliced(node.outputs[k])) continue;
      return NotSliceable(
          from_, fmt::format("{} would be {}, not {}", from_.Where(node),
                             TypeToString(to_.type(copy)), TypeToString(Sliced(node.outputs[k]))));
    }
    return Status();
  }

  const Graph& from_;
  const std::vector<int>& axes_;
  const std::map<NodeId, std::vector<size_t>>& whole_;
  const std::set<NodeId>& in_step_;
  const int64_t slices_;
  std::vector<ValueId> map_;        // by value of from_: its slice
  std::vector<ValueId> whole_map_;  // by value of from_: all of it, once a node has asked for it
  Graph to_;
};

}  // namespace

std::vector<int> BatchAxesAfter(const OpDef& op, const OpCall& call, std::span<const int> inputs,
                                int64_t batch) {
  const SampleCall s{op, call, inputs, batch};
  const size_t count = call.outputs.size();
  if (std::any_of(inputs.begin(), inputs.end(), IsPartial)) {
    const int partial = PartialAfter(s);
    return partial == kCoupled ? std::vector<int>() : std::vector<int>(count, partial);
  }
  for (const Factor& factor : AxesOf(op, call)) {
    if (!FactorHolds(s, factor)) continue;
    if (factor.over != Factor::Over::kNothing) {
      if (s.WithoutSamples() || !IsFloat(call.outputs[0].dtype)) continue;
      const bool mean = factor.over == Factor::Over::kMean;
      return std::vector<int>(count, mean ? kPartialMean : kPartialSum);
    }
    if (s.WithoutSamples() && !ComesFromNoInput(factor)) continue;
    if (HoldsSamples(s, factor)) return factor.outputs;
  }
  if (s.WithoutSamples() && !op.draws) return std::vector<int>(count, kReplicated);
  return {};
}

bool IsWholeInput(const std::string& name) { return name.starts_with(kWholePrefix); }

Result<BatchAxes> FindBatchAxes(const Graph& graph, const std::vector<ValueId>& roots,
                                const std::vector<ValueId>& samples, SliceOrder order) {
  Walk walk(graph, samples, order);
  for (ValueId root : roots) {
    if (const NodeId node = walk.culprit(root); node >= 0)
      return NotSliceable(graph, graph.Where(graph.node(node)) + " couples its samples");
    const int kind = walk.axis(root);
    if (kind == kPartialMean || kind == kPartialSum || kind == 0) continue;
    return NotSliceable(graph, fmt::format("'{}' is neither a mean nor a sum over its samples",
                                           graph.value(root).name));
  }
  for (const GraphUpdate& update : graph.updates()) {
    if (walk.runs_in_step() && walk.axis(update.value) == kReplicated) continue;
    return NotSliceable(graph,
                        fmt::format("each step changes '{}'", graph.value(update.variable).name));
  }
  return walk.Take();
}

Result<Graph> SliceGraph(const Graph& graph, const BatchAxes& samples, int64_t slices) {
  return Slicer(graph, samples, slices).Run();
}

}  // namespace ridge
