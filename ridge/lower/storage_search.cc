// Some nodes require several tensors of one type (x and y of batch_norm), so values form classes:
// all values of a class become 16-bit, or none.  A class gains two bytes for each element that is
// written or read in 16 bits, and loses six where a reader needs f32, since a cast must write it.
#include "ridge/lower/storage_search.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "ridge/graph/expression.h"
#include "ridge/graph/keep_f32.h"

namespace ridge {
namespace {

// Below, all that is saved is less than what a node costs to start.
constexpr int64_t kLeastElements = 16384;
constexpr int64_t kSavedBytes =
    2;                             // of an element, by each node that writes or reads it in 16 bits
constexpr int64_t kCastBytes = 6;  // of an element: a cast reads 2 and writes 4
constexpr double kAboutAsGood = 0.5;

// Tensors of a node that are stored in 16 bits together.
struct Group {
  std::vector<size_t> inputs, outputs;
};

// `all` with the tensors that this node has.
Group GroupOf(const Node& node, const DTypeGroup& all) {
  Group group;
  for (const size_t k : all.outputs) {
    if (k < node.outputs.size()) group.outputs.push_back(k);
  }
  for (size_t i : all.inputs) {
    const size_t end = all.rest && i == all.inputs.back() ? node.inputs.size() : i + 1;
    for (; i < std::min(end, node.inputs.size()); ++i) {
      if (node.inputs[i] != kNoValue) group.inputs.push_back(i);
    }
  }
  return group;
}

bool IsPointwise(const Node& node) {
  const bool complete =
      std::find(node.inputs.begin(), node.inputs.end(), kNoValue) == node.inputs.end();
  return complete && (node.op->elementwise != nullptr || node.op->name == "fused");
}

// Contractions, norms and pools: the loss begins after the last of them.
bool IsLayer(const Node& node) {
  const CostClass kind = node.op->cost_class;
  return kind == CostClass::kMatmul || kind == CostClass::kConv || kind == CostClass::kNorm ||
         kind == CostClass::kPool;
}

// Searches the classes of values that gain by reduced-precision storage.
class StorageSearch {
 public:
  StorageSearch(const Graph& graph, DType reduced, KernelQuery& kernels)
      : graph_(graph),
        reduced_(reduced),
        kernels_(kernels),
        parent_(graph.values().size()),
        blocked_(graph.values().size(), false),
        gain_(graph.values().size(), 0) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }

  StorageChoice Run() {
    BlockResults();
    ReleaseResults();
    BlockUpdates();
    BlockValues();
    StorageChoice choice;
    for (const Node& node : graph_.nodes()) choice.reads.push_back(Visit(node));
    for (const GraphOutput& output : graph_.outputs()) Gain(output.value, -kCastBytes);
    for (size_t v = 0; v < parent_.size(); ++v) {
      const size_t root = Root(v);
      choice.values.push_back(!blocked_[root] && gain_[root] > 0);
    }
    return choice;
  }

 private:
  bool IsF32(ValueId id) const { return id != kNoValue && graph_.type(id).dtype == DType::kF32; }

  void Block(ValueId id) {
    if (id != kNoValue) blocked_[Root(static_cast<size_t>(id))] = true;
  }
  void Gain(ValueId id, int64_t bytes_each) {
    if (IsF32(id)) gain_[Root(static_cast<size_t>(id))] += bytes_each * graph_.type(id).elements();
  }

  size_t Root(size_t v) {
    while (parent_[v] != v) v = parent_[v] = parent_[parent_[v]];
    return v;
  }
  void Unite(ValueId a, ValueId b) {
    const size_t from = Root(static_cast<size_t>(b)), to = Root(static_cast<size_t>(a));
    if (from == to) return;
    parent_[from] = to;
    gain_[to] += gain_[from];
    blocked_[to] = blocked_[to] || blocked_[from];
  }

  void BlockValues() {
    for (size_t v = 0; v < graph_.values().size(); ++v) {
      const ValueInfo& info = graph_.values()[v];
      const bool activation =
          info.kind == ValueKind::kResult &&
          (info.role == ValueRole::kNone || info.role == ValueRole::kRecomputed) &&
          info.type.dtype == DType::kF32 && info.type.rank() > 1 &&
          info.type.elements() >= kLeastElements;
      if (!activation) blocked_[v] = true;
    }
  }

  // What outputs are computed from, up to the last layer.
  void BlockResults() {
    std::vector<ValueId> open;
    for (const GraphOutput& output : graph_.outputs()) open.push_back(output.value);
    BlockBefore(std::move(open),
                [](const Node& node) { return IsLayer(node) ? 0 : node.inputs.size(); });
  }

  // But for results of products with narrow_result, and what only moves them.
  void ReleaseResults() {
    std::vector<bool> released(graph_.values().size(), false);
    for (const Node& node : graph_.nodes()) {
      const bool moves = node.op->cost_class == CostClass::kMove && node.inputs.size() == 1;
      const bool follows = moves && released[static_cast<size_t>(node.inputs[0])];
      if (!follows && !HasNarrowResult(node.attrs)) continue;
      released[static_cast<size_t>(node.outputs[0])] = true;
      blocked_[static_cast<size_t>(node.outputs[0])] = false;
    }
  }

  // What new contents of variables are computed from, up to the last layer or sum, which the rows
  // that are scattered into a table are, too.
  void BlockUpdates() {
    std::vector<ValueId> open;
    for (const GraphUpdate& update : graph_.updates()) open.push_back(update.value);
    BlockBefore(std::move(open), [](const Node& node) -> size_t {
      if (IsLayer(node) || node.op->cost_class == CostClass::kReduce) return 0;
      return node.op->name == "scatter" ? 1 : node.inputs.size();
    });
  }

  // These values and those that they are computed from, through the first inputs of a node, as many
  // as `through` says.
  void BlockBefore(std::vector<ValueId> open, size_t (*through)(const Node&)) {
    std::vector<bool> seen(graph_.nodes().size(), false);
    while (!open.empty()) {
      const ValueId id = open.back();
      open.pop_back();
      if (id == kNoValue) continue;
      Block(id);
      const NodeId n = graph_.value(id).producer;
      if (n < 0 || seen[static_cast<size_t>(n)]) continue;
      seen[static_cast<size_t>(n)] = true;
      const Node& node = graph_.node(n);
      open.insert(open.end(), node.inputs.begin(), node.inputs.begin() + through(node));
    }
  }

  std::vector<bool> Visit(const Node& node) {
    if (KeepsF32(node.attrs)) return VisitKept(node);
    return TakesCasts(node) ? VisitPointwise(node) : VisitNode(node);
  }

  // Its operands are not rounded on their way, nor its results.
  std::vector<bool> VisitKept(const Node& node) {
    for (ValueId id : node.inputs) Block(id);
    for (ValueId id : node.outputs) Block(id);
    return std::vector<bool>(node.inputs.size(), false);
  }

  // Any tensor of a pointwise node may be stored in 16 bits: a cast is one more step.
  std::vector<bool> VisitPointwise(const Node& node) {
    for (ValueId id : node.inputs) Gain(id, kSavedBytes);
    for (ValueId id : node.outputs) Gain(id, kSavedBytes);
    return std::vector<bool>(node.inputs.size(), true);
  }

  std::vector<bool> VisitNode(const Node& node) {
    std::vector<bool> reads(node.inputs.size(), false), writes(node.outputs.size(), false);
    for (const DTypeGroup& all : kernels_.rules().ReducedGroups(*node.op)) {
      const Group group = GroupOf(node, all);
      if (!Takes(node, group)) continue;
      for (size_t i : group.inputs) reads[i] = true;
      for (size_t k : group.outputs) writes[k] = true;
      UniteGroup(node, group);
    }
    for (size_t i = 0; i < node.inputs.size(); ++i)
      Gain(node.inputs[i], reads[i] ? kSavedBytes : -kCastBytes);
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      Gain(node.outputs[k], kSavedBytes);
      if (!writes[k]) Block(node.outputs[k]);
    }
    return reads;
  }

  void UniteGroup(const Node& node, const Group& group) {
    std::vector<ValueId> members;
    for (size_t i : group.inputs) members.push_back(node.inputs[i]);
    for (size_t k : group.outputs) members.push_back(node.outputs[k]);
    members.erase(std::remove(members.begin(), members.end(), kNoValue), members.end());
    for (ValueId id : members) Unite(members[0], id);
  }

  // Whether the operator accepts the group in 16 bits, with a kernel about as good as that for f32.
  bool Takes(const Node& node, const Group& group) {
    const OpCall wide = graph_.Call(node);
    OpCall call = wide;
    for (size_t i : group.inputs) {
      if (!IsF32(node.inputs[i])) return false;
      call.inputs[i].dtype = reduced_;
    }
    for (size_t k : group.outputs) call.outputs[k].dtype = reduced_;
    if (call.attrs.contains("out_dtype"))
      call.attrs["out_dtype"] = std::string(DTypeName(call.outputs[0].dtype));
    const Result<std::vector<TensorType>> types = InferCall(*node.op, call);
    if (!types.ok() || *types != call.outputs) return false;
    if (node.op->alias_input >= 0) return true;
    return kernels_.BestEfficiency(*node.op, call) >=
           kAboutAsGood * kernels_.BestEfficiency(*node.op, wide);
  }

  const Graph& graph_;
  const DType reduced_;
  KernelQuery& kernels_;
  std::vector<size_t> parent_;  // by value: union-find over classes
  std::vector<bool> blocked_;   // by root
  std::vector<int64_t> gain_;   // by root, in bytes
};

}  // namespace

bool TakesCasts(const Node& node) {
  if (!IsPointwise(node)) return false;
  size_t steps = 1;
  if (node.op->name == "fused") {
    const auto& text = std::get<std::string>(node.attrs.at("expr"));
    steps = static_cast<size_t>(std::count(text.begin(), text.end(), '('));
  }
  return steps + node.inputs.size() + node.outputs.size() <= kMostExpressionSteps;
}

StorageChoice ChooseReducedStorage(const Graph& graph, DType reduced, KernelQuery& kernels) {
  return StorageSearch(graph, reduced, kernels).Run();
}

}  // namespace ridge
