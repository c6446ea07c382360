// slice(f(x)) -> f(slice(x)), if the other rows of f(x) have no readers.
//
// Two walks.  Backward: computes the rows of each value that are read, as the smallest range of one
// axis that covers all readers; a node with independent rows (axes.h) needs the same rows of its
// inputs.  Forward: emits such nodes for these rows only, with a slice where such a node reads
// a whole value.
//
// Effective before differentiation, whose gradients read the values of the forward nodes: an
// encoder whose classifier reads one token then computes, and differentiates, the last block's
// queries, projections and norms only for that token.
//
// Known weakness: one range of one axis per value.  Two readers of distant rows make it whole.
#include <algorithm>
#include <map>
#include <tuple>

#include "ridge/graph/axes.h"
#include "ridge/graph/passes/passes.h"
#include "ridge/graph/passes/rewriter.h"
#include "ridge/graph/passes/slice_ranges.h"

namespace ridge {
namespace {

using Ranges = std::vector<Rows>;  // of different axes

// What is read of a value.
struct Need {
  enum class Kind : uint8_t { kNothing, kRows, kAll } kind = Kind::kNothing;
  Rows rows;
};

// The ranges of a slice that takes less than all.
std::optional<Ranges> RangesOfSlice(const Graph& graph, const Node& node) {
  std::optional<Ranges> ranges = SliceRows(node.attrs, graph.type(node.inputs[0]).dims);
  if (!ranges || ranges->empty()) return {};
  return ranges;
}

// The row of a gather of one known row.
std::optional<Ranges> RangesOfGather(const Graph& graph, const Node& node) {
  const Tensor& index = graph.value(node.inputs[1]).constant;
  const bool known = graph.value(node.inputs[1]).kind == ValueKind::kConstant;
  if (!known || index.elements() != 1) return {};
  const Dims& dims = graph.type(node.inputs[0]).dims;
  int64_t axis = std::get<int64_t>(node.attrs.at("axis"));
  if (axis < 0) axis += static_cast<int64_t>(dims.size());
  const int64_t extent = dims[static_cast<size_t>(axis)];
  auto row = static_cast<int64_t>(index.at(0));
  if (row < 0) row += extent;
  if (row < 0 || row >= extent) return {};
  return Ranges{{axis, row, 1}};
}

class SlicePusher {
 public:
  explicit SlicePusher(const Graph& graph)
      : graph_(graph),
        needs_(graph.values().size()),
        sliced_(graph.nodes().size()),
        slices_(graph.nodes().size()),
        rewriter_(graph) {}

  // False when no node can be made for fewer rows.
  bool FindSliced() {
    for (const GraphOutput& output : graph_.outputs()) ReadAll(output.value);
    for (const GraphUpdate& update : graph_.updates()) ReadAll(update.value);
    bool any = false;
    for (size_t n = graph_.nodes().size(); n-- > 0;) any = Ask(n) || any;
    return any;
  }

  Result<Graph> Run() {
    RIDGE_RETURN_IF_ERROR(rewriter_.Walk([this](const Node& node) { return Visit(node); }));
    return rewriter_.Finish();
  }

 private:
  Need& NeedOf(ValueId id) { return needs_[static_cast<size_t>(id)]; }
  size_t IndexOf(const Node& node) const { return static_cast<size_t>(graph_.IdOf(node)); }
  int64_t Extent(ValueId id, int64_t axis) const {
    return graph_.type(id).dims[static_cast<size_t>(axis)];
  }

  void ReadAll(ValueId id) {
    if (id != kNoValue) NeedOf(id).kind = Need::Kind::kAll;
  }

  void ReadRows(ValueId id, const Rows& rows) {
    Need& need = NeedOf(id);
    if (need.kind == Need::Kind::kNothing) {
      need = {Need::Kind::kRows, rows};
    } else if (need.kind == Need::Kind::kRows && need.rows.axis == rows.axis) {
      const int64_t first = std::min(need.rows.first, rows.first);
      need.rows = {rows.axis, first, std::max(need.rows.end(), rows.end()) - first};
    } else {
      need.kind = Need::Kind::kAll;
    }
  }

  // What node n reads of its inputs, all its readers being known.  True when it computes only some
  // rows.
  bool Ask(size_t n) {
    const Node& node = graph_.nodes()[n];
    if (AskSlice(n)) return false;
    const bool few_rows = OnlyFewRowsOf(node);
    if (few_rows) sliced_[n] = ForRows(node, NeedOf(node.outputs[0]).rows);
    if (!sliced_[n]) NeedOf(node.outputs[0]).kind = Need::Kind::kAll;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNoValue) continue;
      if (sliced_[n] && sliced_[n]->inputs[i]) {
        ReadRows(node.inputs[i], *sliced_[n]->inputs[i]);
      } else {
        ReadAll(node.inputs[i]);
      }
    }
    return sliced_[n].has_value();
  }

  bool IsWeight(ValueId id) const {
    const ValueKind kind = graph_.value(id).kind;
    return kind == ValueKind::kParameter || kind == ValueKind::kConstant;
  }

  // Columns of a product with weights stay whole: a part of the weights would be a copy of them.
  std::optional<SlicedCall> ForRows(const Node& node, const Rows& rows) const {
    std::optional<SlicedCall> call = CallForRows(*node.op, graph_.Call(node), rows);
    if (!call || node.op->cost_class != CostClass::kMatmul) return call;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (call->inputs[i] && !IsWeight(node.inputs[i])) return call;
    }
    return std::nullopt;
  }

  // At most half: less is not worth the slices.
  bool OnlyFewRowsOf(const Node& node) {
    const Need& need = NeedOf(node.outputs[0]);
    for (size_t i = 1; i < node.outputs.size(); ++i) {
      if (NeedOf(node.outputs[i]).kind != Need::Kind::kNothing) return false;
    }
    return need.kind == Need::Kind::kRows &&
           2 * need.rows.count <= Extent(node.outputs[0], need.rows.axis);
  }

  // A slice reads of its input the narrowest of its ranges; the others are cut after that.
  bool AskSlice(size_t n) {
    const Node& node = graph_.nodes()[n];
    std::optional<Ranges> ranges;
    if (node.op->name == "slice") ranges = RangesOfSlice(graph_, node);
    if (node.op->name == "gather") ranges = RangesOfGather(graph_, node);
    if (!ranges) return false;
    const ValueId x = node.inputs[0];
    std::stable_sort(ranges->begin(), ranges->end(), [&](const Rows& a, const Rows& b) {
      return a.count * Extent(x, b.axis) < b.count * Extent(x, a.axis);
    });
    ReadRows(x, ranges->front());
    if (node.op->name == "gather") ReadAll(node.inputs[1]);
    NeedOf(node.outputs[0]).kind = Need::Kind::kAll;
    slices_[n] = *std::move(ranges);
    return true;
  }

  Status Visit(const Node& node) {
    const size_t n = IndexOf(node);
    if (sliced_[n]) return EmitSliced(node, *sliced_[n]);
    if (!slices_[n].empty() && MadeRows(node.inputs[0])) return EmitSlice(node, slices_[n]);
    return rewriter_.Copy(node);
  }

  // The rows that exist of an old value, when not all do.
  const Rows* MadeRows(ValueId old) const {
    const NodeId producer = graph_.value(old).producer;
    const bool sliced = producer >= 0 && sliced_[static_cast<size_t>(producer)].has_value();
    return sliced ? &needs_[static_cast<size_t>(old)].rows : nullptr;
  }

  Status EmitSliced(const Node& node, const SlicedCall& call) {
    std::vector<ValueId> inputs;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      ValueId now = rewriter_.Map(node.inputs[i]);
      if (call.inputs[i]) {
        RIDGE_ASSIGN_OR_RETURN(now, Read(node.inputs[i], *call.inputs[i], node.location));
      }
      inputs.push_back(now);
    }
    return rewriter_.Emit(*node.op, std::move(inputs), call.attrs, node.outputs, node.location);
  }

  // These rows of an old value.
  Result<ValueId> Read(ValueId old, Rows rows, const std::string& location) {
    if (const Rows* made = MadeRows(old)) {
      if (*made == rows) return rewriter_.Map(old);
      rows.first -= made->first;
    }
    const auto key = std::make_tuple(old, rows.axis, rows.first, rows.count);
    const auto known = read_.find(key);
    if (known != read_.end()) return known->second;
    const std::string name = rewriter_.FreshName(graph_.value(old).name + ".rows");
    RIDGE_ASSIGN_OR_RETURN(const ValueId now,
                           rewriter_.AddNamedNode(*FindOp("slice"), {rewriter_.Map(old)},
                                                  SliceAttrsOf({rows}), name, location));
    read_.emplace(key, now);
    return now;
  }

  // The rest of a slice or gather whose producer computes only some rows.
  Status EmitSlice(const Node& node, const Ranges& ranges) {
    const ValueId result = node.outputs[0];
    RIDGE_ASSIGN_OR_RETURN(ValueId now, Read(node.inputs[0], ranges.front(), node.location));
    const std::string name = graph_.value(result).name;
    if (node.op->name == "gather") {
      const AttrMap dims = {{"dims", graph_.type(result).dims}, {"allow_zero", int64_t{1}}};
      return rewriter_.Emit(*FindOp("reshape"), {now}, dims, {result}, node.location);
    }
    if (ranges.size() > 1) {
      return rewriter_.Emit(*FindOp("slice"), {now},
                            SliceAttrsOf({ranges.begin() + 1, ranges.end()}), {result},
                            node.location);
    }
    rewriter_.Set(result, now);
    return Status();
  }

  const Graph& graph_;
  std::vector<Need> needs_;                        // by value
  std::vector<std::optional<SlicedCall>> sliced_;  // by node
  std::vector<Ranges> slices_;                     // by node; empty: no slice
  std::map<std::tuple<ValueId, int64_t, int64_t, int64_t>, ValueId> read_;
  GraphRewriter rewriter_;
};

}  // namespace

Result<Graph> PushDownSlices(Graph graph) {
  SlicePusher pusher(graph);
  if (!pusher.FindSliced()) return graph;
  return pusher.Run();
}

}  // namespace ridge
