#include "ridge/plan/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ridge/graph/uses.h"
#include "ridge/plan/choose_kernel.h"
#include "ridge/plan/schedule.h"
#include "ridge/plan/slices.h"
#include "ridge/plan/slices_in_step.h"
#include "ridge/plan/tree_sums.h"
#include "ridge/plan/uses.h"

namespace ridge {
namespace {

// Where a node of a step in slices runs; steps in one slice have no loop.
enum class Where : uint8_t { kLoop, kBehind };

class Lowering {
 public:
  Lowering(const NamedGraph& named, KernelQuery& kernels, const PlanOptions& options,
           PersistentRegion& persistent, const GraphFacts& facts)
      : named_(named),
        graph_(named.graph),
        kernels_(kernels),
        chooser_(kernels, options),
        options_(options),
        persistent_(persistent),
        facts_(facts),
        sliced_inputs_(named.sliced_inputs.begin(), named.sliced_inputs.end()),
        stacked_(named.stacked_outputs.begin(), named.stacked_outputs.end()),
        in_step_(RunsInStep(named)),
        phases_(FindSlicePhases(named)),
        graph_uses_(named.graph),
        copies_(named.graph.values().size()) {
    step_.name = named.name;
    step_.slices = named.slices;
    if (named.share)
      step_.tree =
          TreePlan{*named.share, FoldsOf(named.share->owned(), named.share->slices), named.wire};
  }

  Result<LoweredGraph> Run() {
    for (size_t i = 0; i < graph_.values().size(); ++i)
      RIDGE_RETURN_IF_ERROR(AddPersistent(static_cast<ValueId>(i)));
    for (NodeId n : ScheduleNodes(graph_)) RIDGE_RETURN_IF_ERROR(AddNode(n));
    for (const GraphOutput& output : graph_.outputs()) AddOutput(output);
    AddUpdates();
    NoteSliceSums();
    FormLoop();
    return LoweredGraph{std::move(step_), std::move(sources_)};
  }

 private:
  struct Copy {
    LayoutId layout;
    int value;      // index into step_.values
    int node = -1;  // the reorder that makes it; -1: none
    bool on_host = false;
  };

  // --- values -------------------------------------------------------------------------------

  Status AddPersistent(ValueId id) {
    const ValueInfo& info = graph_.value(id);
    if (info.kind == ValueKind::kResult) return Status();
    const bool sliced = info.kind == ValueKind::kInput && sliced_inputs_.contains(info.name);
    RIDGE_ASSIGN_OR_RETURN(
        const int index,
        persistent_.IndexOf(info, step_, sliced, options_.double_buffer_inputs ? 2 : 1));
    const LayoutId layout = IsVariable(info) ? persistent_.LayoutOf(info.name) : kRowMajor;
    PlannedValue value;
    value.name = info.name;
    value.type = info.type;
    value.layout = layout;
    value.purpose = PurposeOf(info);
    value.persistent = true;
    value.persistent_index = index;
    value.size_bytes = info.type.bytes();
    value.on_host = IsVariable(info) && facts_.host_variables.contains(info.name);
    persistent_.values[static_cast<size_t>(index)].on_host = value.on_host;
    if (layout != kRowMajor) {
      value.size_bytes = kernels_.LayoutBytes(layout, info.type);
      persistent_.values[static_cast<size_t>(index)].layout = layout;
      persistent_.values[static_cast<size_t>(index)].size_bytes = value.size_bytes;
    }
    if (step_.slices > 1 && sliced) value.slice_bytes = info.type.bytes();
    step_.values.push_back(value);
    const int at = static_cast<int>(step_.values.size()) - 1;
    copies_[static_cast<size_t>(id)].push_back({layout, at, /*node=*/-1, value.on_host});
    if (info.kind == ValueKind::kInput) step_.inputs[info.name] = at;
    return Status();
  }

  // Whether the node runs in each slice or, behind the loop, once.
  Where WhereIs(const Node& node) const {
    return phases_.RunsLast(node) ? Where::kBehind : Where::kLoop;
  }

  int AddValue(const ValueInfo& info, LayoutId layout, Purpose purpose, std::string name,
               bool on_host) {
    PlannedValue value;
    value.on_host = on_host;
    value.name = std::move(name);
    value.type = info.type;
    value.layout = layout;
    value.purpose = purpose;
    value.size_bytes = kernels_.LayoutBytes(layout, info.type);
    step_.values.push_back(std::move(value));
    return static_cast<int>(step_.values.size()) - 1;
  }

  const Copy& PrimaryCopy(ValueId id) const { return copies_[static_cast<size_t>(id)].front(); }
  LayoutId Primary(ValueId id) const { return PrimaryCopy(id).layout; }

  int FindCopy(ValueId id, LayoutId layout, bool on_host) const {
    for (const Copy& copy : copies_[static_cast<size_t>(id)]) {
      if (copy.layout == layout && copy.on_host == on_host) return copy.value;
    }
    return -1;
  }

  // --- nodes --------------------------------------------------------------------------------

  Status AddNode(NodeId n) {
    const Node& node = graph_.node(n);
    RIDGE_CHECK(node.op->slices_attr == nullptr || node.attrs.integer(node.op->slices_attr) == 1,
                "norms over slices are split");
    const bool on_host = facts_.host_nodes[static_cast<size_t>(n)];
    if (node.op->alias_input >= 0) return AddView(node, on_host), Status();
    PlannedNode planned;
    planned.on_host = on_host;
    if (node.op->gathers_slices) {
      planned = AllGatherNode(step_, graph_.Call(node));
    } else {
      planned.call = graph_.Call(node);
      planned.cost = CallCost(*node.op, planned.call);
      RIDGE_RETURN_IF_ERROR(Decide(n, planned));
      if (on_host) {
        const Work work = WorkOf(node.op, planned.call, planned.cost);
        planned.modelled_s = kernels_.host()->nominal().Seconds(work, planned.choice);
      }
      planned.op = node.op->name;
      planned.def = node.op;
    }
    planned.name = graph_.value(node.outputs[0]).name;
    const Where where = WhereIs(node);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      planned.inputs.push_back(
          node.inputs[i] == kNoValue
              ? -1
              : CopyIn(node.inputs[i], planned.choice.input_layouts[i], where, on_host));
    }
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      const ValueInfo& info = graph_.value(node.outputs[k]);
      const LayoutId layout = planned.choice.output_layouts[k];
      const int at = AddValue(info, layout, PurposeOf(info), info.name, on_host);
      planned.outputs.push_back(at);
      copies_[static_cast<size_t>(node.outputs[k])].push_back({layout, at, /*node=*/-1, on_host});
    }
    Emit(std::move(planned), where, n);
    return Status();
  }

  void Emit(PlannedNode node, Where where, NodeId source) {
    step_.nodes.push_back(std::move(node));
    where_.push_back(where);
    sources_.push_back(source);
  }

  // The output is a view of the input's bytes; both are row-major.
  void AddView(const Node& node, bool on_host) {
    const ValueId source = node.inputs[static_cast<size_t>(node.op->alias_input)];
    const int from = CopyIn(source, kRowMajor, WhereIs(node), on_host);
    const ValueInfo& info = graph_.value(node.outputs[0]);
    const int at = AddValue(info, kRowMajor, PurposeOf(info), info.name, on_host);
    step_.values[static_cast<size_t>(at)].shares_with = from;
    copies_[static_cast<size_t>(node.outputs[0])].push_back({kRowMajor, at, /*node=*/-1, on_host});
  }

  Status Decide(NodeId n, PlannedNode& planned) {
    if (facts_.decided != nullptr) {
      const DecidedKernel& kernel = *(*facts_.decided)[static_cast<size_t>(n)];
      planned.choice = kernel.choice;
      planned.refusals = kernel.refusals;
      return Status();
    }
    if (planned.on_host) return ChooseOnHost(*graph_.node(n).op, planned);
    RIDGE_RETURN_IF_ERROR(Choose(graph_.node(n), planned));
    NoteFirstReads(graph_.node(n), planned.choice);
    return Status();
  }

  // In row-major.
  Status ChooseOnHost(const OpDef& op, PlannedNode& planned) {
    PlanOptions options = options_;
    options.layout = false;
    options.kernel_s = nullptr;
    KernelQuery& host = *kernels_.host();
    std::vector<LayoutId> at_hand(planned.call.inputs.size(), kRowMajor);
    RIDGE_RETURN_IF_ERROR(
        KernelChooser(host, options).Choose(op, std::move(at_hand), planned, [](size_t, LayoutId) {
          return NeededCopy{};
        }));
    planned.choice.key += " by the host";
    return Status();
  }

  Status Choose(const Node& node, PlannedNode& planned) {
    std::vector<LayoutId> at_hand;
    for (ValueId id : node.inputs) at_hand.push_back(id == kNoValue ? kRowMajor : Primary(id));
    return chooser_.Choose(*node.op, std::move(at_hand), planned, [&](size_t i, LayoutId layout) {
      return node.inputs[i] == kNoValue ? NeededCopy{} : CopyFor(node.inputs[i], layout);
    });
  }

  // The reorder that reading the value in this layout needs.  A variable that an optimizer updates
  // may be kept in the layout of its first reader (weight_layout.h).
  NeededCopy CopyFor(ValueId id, LayoutId layout) const {
    const auto first = persistent_.first_reads.find(graph_.value(id).name);
    if (first == persistent_.first_reads.end() || !IsVariable(graph_.value(id)))
      return FindCopy(id, layout, /*on_host=*/false) >= 0 ? NeededCopy{}
                                                          : NeededCopy{Primary(id), 1};
    if (!first->second) return FirstCopyOf(id);
    const bool known = layout != kRowMajor && FindCopy(id, layout, /*on_host=*/false) >= 0;
    return known ? NeededCopy{} : NeededCopy{*first->second, 1};
  }

  // No copy for a single reader; two readers with different layouts need one: each pays half.  What
  // is recomputed reads as its original does, so that both have the bits of a step that keeps it.
  NeededCopy FirstCopyOf(ValueId id) const {
    int64_t reads = 0;
    for (const NodeId reader : graph_uses_.ReadersOf(id)) {
      const Node& node = graph_.node(reader);
      if (IsOptimizer(node) || graph_.value(node.outputs[0]).role == ValueRole::kRecomputed)
        continue;
      reads += std::count(node.inputs.begin(), node.inputs.end(), id);
    }
    return {Primary(id), reads > 1 ? 0.5 : 0};
  }

  void NoteFirstReads(const Node& node, const KernelChoice& choice) {
    if (IsOptimizer(node)) return;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNoValue || !IsVariable(graph_.value(node.inputs[i]))) continue;
      const auto first = persistent_.first_reads.find(graph_.value(node.inputs[i]).name);
      if (first != persistent_.first_reads.end() && !first->second)
        first->second = choice.input_layouts[i];
    }
  }

  // The value in this layout; adds a reorder if there is no such copy yet.  A value that is
  // complete only behind the loop is copied where its readers run, every other value in the loop.
  // What crosses between the memories is row-major on both sides.
  int CopyIn(ValueId id, LayoutId layout, Where reader, bool on_host) {
    for (const Copy& copy : copies_[static_cast<size_t>(id)]) {
      if (copy.layout != layout || copy.on_host != on_host) continue;
      if (copy.node >= 0 && reader == Where::kLoop)
        where_[static_cast<size_t>(copy.node)] = Where::kLoop;
      return copy.value;
    }
    const ValueInfo& info = graph_.value(id);
    const bool weight = info.kind == ValueKind::kParameter;
    const bool crosses = PrimaryCopy(id).on_host != on_host;
    int from = PrimaryCopy(id).value;
    if (crosses) from = CopyIn(id, kRowMajor, reader, on_host != (layout == kRowMajor));
    const std::string suffix = !crosses || layout != kRowMajor ? kernels_.LayoutName(layout)
                               : on_host                       ? "host"
                                                               : "device";
    const int to = AddValue(info, layout, weight ? Purpose::kWorkspace : PurposeOf(info),
                            fmt::format("{}@{}", info.name, suffix), on_host);
    AddReorder(from, to, phases_.KnownLast(id) ? reader : Where::kLoop);
    const int node = static_cast<int>(step_.nodes.size()) - 1;
    copies_[static_cast<size_t>(id)].push_back({layout, to, node, on_host});
    return to;
  }

  void AddReorder(int from, int to, Where where) {
    const PlannedValue& source = step_.values[static_cast<size_t>(from)];
    const PlannedValue& target = step_.values[static_cast<size_t>(to)];
    PlannedNode node = ReorderNode(kernels_, source, target);
    node.inputs = {from};
    node.outputs = {to};
    Emit(std::move(node), where, kNoNode);
  }

  // --- outputs and updates -------------------------------------------------------------------

  // An output that is a variable is copied out before the updates change it.
  void AddOutput(const GraphOutput& output) {
    const bool last = phases_.KnownLast(output.value);
    int value = CopyIn(output.value, kRowMajor, last ? Where::kBehind : Where::kLoop,
                       /*on_host=*/false);
    const bool sum = phases_.IsSum(output.value);  // read behind the loop, as all sums
    if (IsVariable(graph_.value(output.value)) && !sum && !graph_.updates().empty())
      value = ScratchCopy(value, output.name + "@out", Where::kLoop);
    if (named_.in_slices() && stacked_.contains(output.name)) value = Stacked(value, output.name);
    step_.outputs[output.name] = value;
  }

  // A copy of each slice's part behind that of the slice before.
  int Stacked(int value, const std::string& name) {
    const int at = ScratchCopy(value, name + "@slices", Where::kLoop);
    PlannedValue& all = step_.values[static_cast<size_t>(at)];
    all.slice_bytes = all.type.bytes();
    all.size_bytes = all.slice_bytes * step_.slices;
    return at;
  }

  int ScratchCopy(int value, const std::string& name, Where where) {
    PlannedValue copy = step_.values[static_cast<size_t>(value)];
    copy.name = name;
    copy.persistent = false;
    copy.persistent_index = -1;
    copy.shares_with = -1;
    step_.values.push_back(std::move(copy));
    const int at = static_cast<int>(step_.values.size()) - 1;
    AddReorder(value, at, where);
    return at;
  }

  // New contents are written directly into the variable if the old ones have no later readers;
  // others are copied at the end, through scratch if the source is itself a variable.
  void AddUpdates() {
    std::vector<std::pair<int, GraphUpdate>> copies;
    for (const GraphUpdate& update : graph_.updates())
      update_sources_.insert(
          FindCopy(update.value, Primary(update.variable), PrimaryCopy(update.variable).on_host));
    for (const GraphUpdate& update : graph_.updates()) {
      const int value = CopyIn(update.value, Primary(update.variable), WhereWritten(update),
                               PrimaryCopy(update.variable).on_host);
      uses_.Extend(step_);
      if (value == PrimaryCopy(update.variable).value) continue;
      if (MayWriteDirectly(update, value)) {
        PlaceIn(update.variable, step_.values[static_cast<size_t>(value)]);
      } else {
        copies.emplace_back(value, update);
      }
    }
    for (auto& [value, update] : copies) {
      if (step_.values[static_cast<size_t>(uses_.bytes().RootOf(value))].persistent)
        value = ScratchCopy(value, step_.values[static_cast<size_t>(value)].name + "@old",
                            WhereWritten(update));
    }
    for (const auto& [value, update] : copies) {
      const ValueInfo& info = graph_.value(update.variable);
      const int target = AddValue(info, Primary(update.variable), PurposeOf(info),
                                  info.name + "@next", PrimaryCopy(update.variable).on_host);
      PlaceIn(update.variable, step_.values[static_cast<size_t>(target)]);
      AddReorder(value, target, WhereWritten(update));
    }
  }

  // Values that are complete only behind the loop are written once, sums in every slice.
  Where WhereWritten(const GraphUpdate& update) const {
    const bool last = phases_.KnownLast(update.value) && !phases_.IsSum(update.variable);
    return last ? Where::kBehind : Where::kLoop;
  }

  void PlaceIn(ValueId variable, PlannedValue& value) {
    const PlannedValue& old = step_.values[static_cast<size_t>(PrimaryCopy(variable).value)];
    value.persistent = true;
    value.persistent_index = old.persistent_index;
  }

  bool MayWriteDirectly(const GraphUpdate& update, int value) const {
    const PlannedValue& planned = step_.values[static_cast<size_t>(value)];
    if (planned.persistent || planned.shares_with >= 0) return false;
    const int producer = uses_.ProducerOf(value);
    // What reads a tree's sum reads the one of all slices.  In step other readers would find
    // another slice's addend.
    if (named_.share && phases_.IsSum(update.variable))
      return producer >= 0 && !(in_step_ && !uses_.ReadsOf(value).empty());
    for (const int old : uses_.bytes().SharersOf(PrimaryCopy(update.variable).value)) {
      for (const auto& [n, input] : uses_.ReadsOf(old)) {
        const PlannedNode& node = step_.nodes[static_cast<size_t>(n)];
        if (RunsAfter(n, producer) || (n == producer && !InPlacePair(node, value, input)))
          return false;
      }
      if (update_sources_.contains(old)) return false;
    }
    return producer >= 0;
  }

  // Nodes behind the loop run after all nodes of the loop.
  bool RunsAfter(int node, int other) const {
    const auto order = [&](int n) { return std::pair(where_[static_cast<size_t>(n)], n); };
    return other < 0 || order(node) > order(other);
  }

  // The nodes of the loop come first; both parts keep their order.
  void FormLoop() {
    const int count = static_cast<int>(step_.nodes.size());
    step_.body = Region::Sequence(0, count);
    if (!named_.in_slices()) return;
    std::vector<PlannedNode> nodes;
    std::vector<NodeId> sources;
    int loop_end = 0;
    for (const Where where : {Where::kLoop, Where::kBehind}) {
      for (size_t n = 0; n < step_.nodes.size(); ++n) {
        if (where_[n] != where) continue;
        nodes.push_back(std::move(step_.nodes[n]));
        sources.push_back(sources_[n]);
      }
      if (where == Where::kLoop) loop_end = static_cast<int>(nodes.size());
    }
    step_.nodes = std::move(nodes);
    sources_ = std::move(sources);
    step_.body.parts = {Region::Loop(0, loop_end, step_.slices), Region::Sequence(loop_end, count)};
    if (in_step_) FormSteps(kernels_.memory(), step_, sources_);
  }

  void NoteSliceSums() {
    for (const std::string& name : named_.accumulators) {
      const auto known = persistent_.by_name.find(name);
      if (known != persistent_.by_name.end()) step_.sums.push_back(known->second);
    }
  }

  static bool InPlacePair(const PlannedNode& node, int output, int input) {
    for (const auto& [out, in] : node.choice.in_place) {
      if (in == input && node.outputs[static_cast<size_t>(out)] == output) return true;
    }
    return false;
  }

  const NamedGraph& named_;
  const Graph& graph_;
  KernelQuery& kernels_;
  KernelChooser chooser_;
  const PlanOptions& options_;
  PersistentRegion& persistent_;
  const GraphFacts& facts_;
  const std::set<std::string> sliced_inputs_, stacked_;
  const bool in_step_;
  const SlicePhases phases_;
  const GraphUses graph_uses_;
  std::vector<std::vector<Copy>> copies_;  // by ValueId; the first is the primary one
  StepPlan step_;
  // By node of step_.
  std::vector<Where> where_;
  std::vector<NodeId> sources_;

  StepUses uses_;  // of what AddUpdates() has seen
  std::set<int> update_sources_;
};

}  // namespace

Result<LoweredGraph> LowerGraph(const NamedGraph& named, KernelQuery& kernels,
                                const PlanOptions& options, PersistentRegion& persistent,
                                const GraphFacts& facts) {
  return Lowering(named, kernels, options, persistent, facts).Run();
}

PlannedNode ReorderNode(KernelQuery& kernels, const PlannedValue& source,
                        const PlannedValue& target) {
  PlannedNode node;
  node.name = target.name;
  node.op = "reorder";
  node.call.where = fmt::format("reorder '{}'", target.name);
  node.call.inputs = {source.type};
  node.call.outputs = {target.type};
  if (source.layout == target.layout) {
    node.choice.kernel = "copy";
    node.choice.key = fmt::format("copy {}", TypeToString(source.type));
    node.choice.input_layouts = {source.layout};
    node.choice.output_layouts = {target.layout};
  } else {
    node.choice = kernels.Reorder(source.type, source.layout, target.layout);
  }
  node.cost = {0, source.type.bytes(), source.type.bytes()};
  return node;
}

}  // namespace ridge
