// transpose(attention(transpose(q), transpose(k), transpose(v))) -> attention(q, k, v, layout=rows)
//
// Projections write [B,T,H,D]; attention by its formula reads [B,H,T,D].  The kernels accept
// strided rows, so the transposes are removed, and with them those of the gradients.  If q, k and v
// are thirds of one product, attention reads its whole result (layout=packed): no slices, and one
// gradient instead of three that are concatenated.  Operators that treat heads and positions alike
// (a rotary embedding, a norm of each row) may come between a transpose and attention.
//
// Effective before differentiation: afterwards the gradient reads the transposed values.
#include <algorithm>
#include <array>

#include "ridge/graph/axes.h"
#include "ridge/graph/passes/passes.h"
#include "ridge/graph/passes/rewriter.h"
#include "ridge/graph/passes/slice_ranges.h"
#include "ridge/graph/pattern.h"
#include "ridge/graph/uses.h"
#include "ridge/lower/passes.h"

namespace ridge {
namespace {

// Columns [first, first + width) of a source seen as a matrix whose rows have `total` columns.
struct Part {
  ValueId source = kNoValue;
  int64_t first = 0, width = 0, total = 0;
};

// An operand [B,H,T,D] of attention.
struct Operand {
  ValueId rows = kNoValue;          // the same as [B,T,H,D], if such a value exists
  std::optional<Part> part;         // of a source [B,T, ..]
  std::vector<const Node*> behind;  // what is computed of the rows before attention reads them
};

struct Match {
  Operand q, k, v;
  bool packed = false;
  Dims packed_dims;  // [B,T,3,H,D]
};

ValueId BeforeReshapes(const Graph& graph, ValueId id) {
  while (const Node* reshape = graph.producer(id, "reshape")) id = reshape->inputs[0];
  return id;
}

bool Permutes(const Node& transpose, const std::vector<int64_t>& order) {
  return std::get<std::vector<int64_t>>(transpose.attrs.at("permutation")) == order;
}

// The one range of a slice, or the row of a gather by one known index.
std::optional<Rows> OneRange(const Graph& graph, const Node& node) {
  const Dims& dims = graph.type(node.inputs[0]).dims;
  if (node.op->name == "slice") {
    const auto ranges = SliceRows(node.attrs, dims);
    if (ranges && ranges->size() == 1) return ranges->front();
  }
  if (node.op->name != "gather") return {};
  const ValueInfo& index = graph.value(node.inputs[1]);
  if (index.kind != ValueKind::kConstant || index.constant.elements() != 1) return {};
  const int64_t axis = std::get<int64_t>(node.attrs.at("axis"));
  const auto first = static_cast<int64_t>(index.constant.at(0));
  if (axis < 0 || first < 0 || first >= dims[static_cast<size_t>(axis)]) return {};
  return Rows{axis, first, 1};
}

// x [B,T,H,D] as columns of a matrix with B*T rows.
std::optional<Part> PartOfRows(const Graph& graph, ValueId x) {
  const Dims& dims = graph.type(x).dims;
  const Node* cut = graph.producer(BeforeReshapes(graph, x));
  const std::optional<Rows> range = cut == nullptr ? std::nullopt : OneRange(graph, *cut);
  if (!range) return {};
  const Dims& from = graph.type(cut->inputs[0]).dims;
  const auto at = from.begin() + range->axis;
  if (ElementCount(Dims(from.begin(), at)) != dims[0] * dims[1]) return {};
  const int64_t inner = ElementCount(Dims(at + 1, from.end()));
  return Part{BeforeReshapes(graph, cut->inputs[0]), range->first * inner, range->count * inner,
              *at * inner};
}

// x [B,H,T,D] = p[i] of p = transpose([B,T,3,H,D]) as [3,B,H,T,D].
std::optional<Part> PartOfStack(const Graph& graph, ValueId x) {
  const Node* cut = graph.producer(BeforeReshapes(graph, x));
  const std::optional<Rows> range = cut == nullptr ? std::nullopt : OneRange(graph, *cut);
  if (!range || range->axis != 0 || range->count != 1) return {};
  const Node* stack = graph.producer(cut->inputs[0], "transpose");
  if (stack == nullptr || !Permutes(*stack, {2, 0, 3, 1, 4})) return {};
  const Dims from = graph.type(stack->outputs[0]).dims, &dims = graph.type(x).dims;
  if (Dims(from.begin() + 1, from.end()) != dims) return {};
  const int64_t width = dims[1] * dims[3];
  return Part{BeforeReshapes(graph, stack->inputs[0]), range->first * width, width,
              from[0] * width};
}

constexpr std::array<int, 2> kSwapped = {1, 2};  // heads and positions

// `dims`, broadcast to four, with heads and positions swapped.
Dims Swapped(Dims dims) {
  dims.insert(dims.begin(), 4 - dims.size(), 1);
  std::swap(dims[1], dims[2]);
  return dims;
}

// Whether a reshape or a transpose swaps heads and positions of what broadcasts to [B,H,T,D].
bool CanSwap(const Dims& dims) {
  const Dims swapped = Swapped(dims);
  return dims.size() == 4 || swapped[1] == 1 || swapped[2] == 1;
}

// Whether y[b,h,t,:] is computed of x[b,h,t,:] alone, and of what broadcasts to it.
bool IsByRow(const Graph& graph, const Node& node) {
  const OpDef& op = *node.op;
  const bool plain = !op.draws && op.dims_attr == nullptr && op.alias_input < 0;
  if (!plain || node.inputs.empty() || node.outputs.size() != 1) return false;
  const OpCall call = graph.Call(node);
  if (call.inputs[0].dims != call.outputs[0].dims || call.inputs[0].rank() != 4) return false;
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    if (call.has_input(i) && !CanSwap(call.inputs[i].dims)) return false;
  }
  const Axes axes = AxesOf(op, call);
  return std::all_of(kSwapped.begin(), kSwapped.end(), [&](int d) {
    return std::any_of(axes.begin(), axes.end(), [&](const Factor& factor) {
      bool aligned = factor.outputs[0] == d && factor.offset_attr == nullptr;
      for (size_t i = 0; i < node.inputs.size() && aligned; ++i)
        aligned = factor.inputs[i] == BroadcastAxis(call, i, d);
      return aligned;
    });
  });
}

// q, k and v are the thirds of one source, in this order.
bool AreThirds(const Operand& q, const Operand& k, const Operand& v, int64_t width) {
  const Operand* operands[] = {&q, &k, &v};
  for (int64_t i = 0; i < 3; ++i) {
    const std::optional<Part>& part = operands[i]->part;
    if (!part || part->source != q.part->source) return false;
    if (part->width != width || part->total != 3 * width || part->first != i * width) return false;
  }
  return true;
}

class AttentionLayouts {
 public:
  explicit AttentionLayouts(const Graph& graph)
      : graph_(graph),
        uses_(graph),
        matches_(graph.nodes().size()),
        turned_back_(graph.nodes().size(), false) {}

  bool Find() {
    bool any = false;
    for (size_t n = 0; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.nodes()[n];
      matches_[n] = MatchNode(node);
      if (!matches_[n]) continue;
      for (NodeId reader : uses_.ReadersOf(node.outputs[0]))
        turned_back_[static_cast<size_t>(reader)] = true;
      any = true;
    }
    return any;
  }

  Result<Graph> Run() {
    GraphRewriter rewriter(graph_);
    RIDGE_RETURN_IF_ERROR(rewriter.Walk([&](const Node& node) -> Status {
      const auto n = static_cast<size_t>(graph_.IdOf(node));
      if (matches_[n]) return Emit(node, *matches_[n], rewriter);
      if (!turned_back_[n]) return rewriter.Copy(node);
      rewriter.Set(node.outputs[0], rewriter.Map(node.inputs[0]));
      return Status();
    }));
    RIDGE_ASSIGN_OR_RETURN(Graph laid_out, rewriter.Finish());
    return RemoveDead(std::move(laid_out));
  }

 private:
  // Everybody who reads y turns it back to [B,T,H,D].
  bool IsTurnedBack(ValueId y) const {
    const std::span<const NodeId> readers = uses_.ReadersOf(y);
    return !readers.empty() && uses_.OnlyNodesRead(y) &&
           std::all_of(readers.begin(), readers.end(), [&](NodeId n) {
             const Node& node = graph_.node(n);
             return node.op->name == "transpose" && Permutes(node, {0, 2, 1, 3});
           });
  }

  Operand FindOperand(ValueId id) const {
    const Node* writer = graph_.producer(id);
    const bool behind = writer != nullptr && uses_.IsReadOnce(id) && writer->outputs[0] == id &&
                        IsByRow(graph_, *writer);
    if (behind) {
      Operand operand = FindOperand(writer->inputs[0]);
      operand.part.reset();
      operand.behind.push_back(writer);
      return operand;
    }
    if (writer == nullptr || writer->op->name != "transpose" || !Permutes(*writer, {0, 2, 1, 3}))
      return {kNoValue, PartOfStack(graph_, id), {}};
    return {writer->inputs[0], PartOfRows(graph_, writer->inputs[0]), {}};
  }

  std::optional<Match> MatchNode(const Node& node) const {
    if (node.op->name != "attention" || std::get<std::string>(node.attrs.at("layout")) != "heads")
      return {};
    if (!IsTurnedBack(node.outputs[0])) return {};
    Match m{FindOperand(node.inputs[0]),
            FindOperand(node.inputs[1]),
            FindOperand(node.inputs[2]),
            false,
            {}};
    const Dims& q = graph_.type(node.inputs[0]).dims;
    m.packed = graph_.type(node.inputs[1]).dims == q && graph_.type(node.inputs[2]).dims == q &&
               AreThirds(m.q, m.k, m.v, q[1] * q[3]);
    if (m.packed) m.packed_dims = {q[0], q[2], 3, q[1], q[3]};
    if (m.packed) return m;
    if (!HasRows(m.q) || !HasRows(m.k) || !HasRows(m.v)) return {};
    return m;
  }

  // Not the rows that a matched attention writes: its result is [B,H,T,D] in the old graph.
  bool HasRows(const Operand& operand) const {
    if (operand.rows == kNoValue) return false;
    const ValueInfo& rows = graph_.value(operand.rows);
    return rows.kind != ValueKind::kResult || !matches_[static_cast<size_t>(rows.producer)];
  }

  Status Emit(const Node& node, const Match& m, GraphRewriter& rewriter) const {
    AttrMap attrs = node.attrs;
    attrs["layout"] = std::string(m.packed ? "packed" : "rows");
    std::vector<ValueId> inputs = rewriter.Map(node.inputs);
    if (m.packed) {
      RIDGE_ASSIGN_OR_RETURN(inputs[0], Packed(node, m, rewriter));
      inputs[1] = inputs[2] = kNoValue;
      while (inputs.back() == kNoValue) inputs.pop_back();
    } else {
      RIDGE_ASSIGN_OR_RETURN(inputs[0], RowsOf(m.q, rewriter));
      RIDGE_ASSIGN_OR_RETURN(inputs[1], RowsOf(m.k, rewriter));
      RIDGE_ASSIGN_OR_RETURN(inputs[2], RowsOf(m.v, rewriter));
    }
    return rewriter.Emit(*node.op, std::move(inputs), std::move(attrs), node.outputs,
                         node.location);
  }

  // What follows the rows, computed of the rows.
  Result<ValueId> RowsOf(const Operand& operand, GraphRewriter& rewriter) const {
    ValueId rows = rewriter.Map(operand.rows);
    for (const Node* node : operand.behind) {
      std::vector<ValueId> inputs = {rows};
      for (size_t i = 1; i < node->inputs.size(); ++i) {
        RIDGE_ASSIGN_OR_RETURN(const ValueId input, Swap(*node, i, rewriter));
        inputs.push_back(input);
      }
      RIDGE_ASSIGN_OR_RETURN(
          rows, rewriter.AddNamedNode(*node->op, std::move(inputs), node->attrs,
                                      rewriter.FreshName(NameOf(*node) + ".rows"), node->location));
    }
    return rows;
  }

  // Input i of a node by row, as it broadcasts to [B,T,H,D].
  Result<ValueId> Swap(const Node& node, size_t i, GraphRewriter& rewriter) const {
    if (node.inputs[i] == kNoValue) return kNoValue;
    const ValueId input = rewriter.Map(node.inputs[i]);
    const Dims dims = graph_.type(node.inputs[i]).dims, swapped = Swapped(dims);
    if (dims.size() < 2) return input;
    const std::string name = rewriter.FreshName(NameOf(node) + ".swapped");
    if (swapped[1] != 1 && swapped[2] != 1) {
      return rewriter.AddNamedNode(*FindOp("transpose"), {input},
                                   {{"permutation", std::vector<int64_t>{0, 2, 1, 3}}}, name,
                                   node.location);
    }
    return rewriter.AddNamedNode(*FindOp("reshape"), {input},
                                 {{"dims", swapped}, {"allow_zero", int64_t{1}}}, name,
                                 node.location);
  }

  const std::string& NameOf(const Node& node) const { return graph_.value(node.outputs[0]).name; }

  Result<ValueId> Packed(const Node& node, const Match& m, GraphRewriter& rewriter) const {
    const ValueId source = m.q.part->source;
    if (graph_.type(source).dims == m.packed_dims) return rewriter.Map(source);
    return rewriter.AddNamedNode(*FindOp("reshape"), {rewriter.Map(source)},
                                 {{"dims", m.packed_dims}, {"allow_zero", int64_t{1}}},
                                 rewriter.FreshName(graph_.value(node.outputs[0]).name + ".qkv"),
                                 node.location);
  }

  const Graph& graph_;
  const GraphUses uses_;
  std::vector<std::optional<Match>> matches_;  // by node
  std::vector<bool> turned_back_;              // by node: a transpose of a matched y
};

}  // namespace

Result<Graph> FoldHeadTransposes(Graph graph) {
  const bool any = std::any_of(graph.nodes().begin(), graph.nodes().end(),
                               [](const Node& node) { return node.op->name == "attention"; });
  if (!any) return graph;
  AttentionLayouts layouts(graph);
  if (!layouts.Find()) return graph;
  return layouts.Run();
}

}  // namespace ridge
