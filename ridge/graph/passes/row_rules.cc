// One small function per family of operators.  `rows` are those of output 0; an answer has the rows
// of each input that they need.
#include "ridge/graph/passes/row_rules.h"

#include <algorithm>
#include <numeric>

namespace ridge {
namespace {

struct Question {
  const Graph& graph;
  const Node& node;
  const Rows& rows;

  const Dims& in(size_t i) const { return graph.type(node.inputs[i]).dims; }
  const Dims& out() const { return graph.type(node.outputs[0]).dims; }
  int64_t integer(const char* name) const { return std::get<int64_t>(node.attrs.at(name)); }
  const std::vector<int64_t>& integers(const char* name) const {
    return std::get<std::vector<int64_t>>(node.attrs.at(name));
  }
  bool has_input(size_t i) const { return i < node.inputs.size() && node.inputs[i] != kNoValue; }
  // Every input whole.
  NarrowCall Whole() const { return {{node.inputs.size(), std::nullopt}, node.attrs}; }
};

using Answer = std::optional<NarrowCall>;

Rows AtAxis(const Rows& rows, int64_t axis) { return {axis, rows.first, rows.count}; }

// An axis of `dims` that broadcasts to axis `to` of an output of `rank`: its place, or -1 where the
// input is the same for all rows.
int64_t AlignedAxis(const Dims& dims, size_t rank, int64_t to) {
  const int64_t axis = to - static_cast<int64_t>(rank - dims.size());
  return axis < 0 || dims[static_cast<size_t>(axis)] == 1 ? -1 : axis;
}

// y = f(a, b, ..), broadcast; and expand, whose attribute holds the dims of y.
Answer Pointwise(const Question& q) {
  NarrowCall call = q.Whole();
  for (size_t i = 0; i < q.node.inputs.size(); ++i) {
    if (!q.has_input(i)) return std::nullopt;
    const int64_t axis = AlignedAxis(q.in(i), q.out().size(), q.rows.axis);
    if (axis >= 0) call.inputs[i] = AtAxis(q.rows, axis);
  }
  return call;
}

Answer Expand(const Question& q) {
  Answer call = Pointwise(q);
  Dims dims = q.out();
  dims[static_cast<size_t>(q.rows.axis)] = q.rows.count;
  call->attrs["dims"] = dims;
  return call;
}

// y [.., M, N] = a [.., M, K] b [.., K, N]: rows M of a, or a part of the batch.  Columns N are
// left whole: a part of the weights would be a copy of them.
Answer Matmul(const Question& q) {
  const auto rank = static_cast<int64_t>(q.out().size());
  const bool has_extras = !std::get<std::string>(q.node.attrs.at("epilogue")).empty();
  if (has_extras || q.rows.axis == rank - 1) return std::nullopt;
  NarrowCall call = q.Whole();
  if (q.rows.axis == rank - 2) {
    const auto a_rank = static_cast<int64_t>(q.in(0).size());
    call.inputs[0] = AtAxis(q.rows, q.integer("transpose_a") != 0 ? a_rank - 1 : a_rank - 2);
    return call;
  }
  for (size_t i = 0; i < 2; ++i) {
    const int64_t axis = AlignedAxis(q.in(i), q.out().size(), q.rows.axis);
    if (axis >= 0) call.inputs[i] = AtAxis(q.rows, axis);
  }
  return call;
}

// Only input 0 has rows; its dimensions from `axis` on belong together.
Answer Normalized(const Question& q) {
  const auto rank = static_cast<int64_t>(q.out().size());
  const int64_t axis = q.integer("axis");
  if (q.rows.axis >= (axis < 0 ? axis + rank : axis)) return std::nullopt;
  NarrowCall call = q.Whole();
  call.inputs[0] = q.rows;
  return call;
}

// softmax, log_softmax: along one axis.
Answer AlongOneAxis(const Question& q) {
  const auto rank = static_cast<int64_t>(q.out().size());
  const int64_t axis = q.integer("axis");
  if (q.rows.axis == (axis < 0 ? axis + rank : axis)) return std::nullopt;
  NarrowCall call = q.Whole();
  call.inputs[0] = q.rows;
  return call;
}

Answer Transpose(const Question& q) {
  std::vector<int64_t> from = q.integers("permutation");
  const auto rank = static_cast<int64_t>(q.out().size());
  if (from.empty()) {
    from.resize(static_cast<size_t>(rank));
    std::iota(from.rbegin(), from.rend(), 0);
  }
  const int64_t axis = from[static_cast<size_t>(q.rows.axis)];
  NarrowCall call = q.Whole();
  call.inputs[0] = AtAxis(q.rows, axis < 0 ? axis + rank : axis);
  return call;
}

// If the axis keeps its extent and the product of the extents before it.
Answer Reshape(const Question& q) {
  const auto end = q.out().begin() + q.rows.axis;
  const int64_t before = ElementCount(Dims(q.out().begin(), end));
  int64_t product = 1;
  for (size_t d = 0; d < q.in(0).size() && product <= before; ++d) {
    if (product == before && q.in(0)[d] == *end) {
      NarrowCall call = q.Whole();
      call.inputs[0] = AtAxis(q.rows, static_cast<int64_t>(d));
      Dims dims = q.out();
      dims[static_cast<size_t>(q.rows.axis)] = q.rows.count;
      const bool zero = std::find(dims.begin(), dims.end(), 0) != dims.end();
      call.attrs = {{"dims", dims}, {"allow_zero", int64_t{zero}}};  // a 0 copies no extent here
      return call;
    }
    product *= q.in(0)[d];
  }
  return std::nullopt;
}

Answer Concat(const Question& q) {
  const auto rank = static_cast<int64_t>(q.out().size());
  const int64_t axis = q.integer("axis");
  if (q.rows.axis == (axis < 0 ? axis + rank : axis)) return std::nullopt;
  NarrowCall call = q.Whole();
  std::fill(call.inputs.begin(), call.inputs.end(), q.rows);
  return call;
}

// y [B,H,T,D]: a query needs all keys; the mask [B,H,T,S] broadcasts.  Causality counts from the
// first query.
Answer Attention(const Question& q) {
  if (q.rows.axis != 0 && q.rows.axis != 2) return std::nullopt;
  if (std::get<std::string>(q.node.attrs.at("layout")) != "heads") return std::nullopt;
  NarrowCall call = q.Whole();
  call.inputs[0] = q.rows;
  if (q.rows.axis == 0) call.inputs[1] = call.inputs[2] = q.rows;
  if (q.has_input(3)) {
    const int64_t axis = AlignedAxis(q.in(3), 4, q.rows.axis);
    if (axis >= 0) call.inputs[3] = AtAxis(q.rows, axis);
  }
  if (q.rows.axis == 2) call.attrs["causal_offset"] = q.integer("causal_offset") + q.rows.first;
  return call;
}

// Over other axes than that of the rows.
Answer Reduce(const Question& q) {
  const auto rank = static_cast<int64_t>(q.in(0).size());
  std::vector<bool> reduced(q.in(0).size(), q.integers("axes").empty());
  for (int64_t axis : q.integers("axes"))
    reduced[static_cast<size_t>(axis < 0 ? axis + rank : axis)] = true;
  const bool keeps = q.integer("keep_dims") != 0;
  int64_t at = 0;
  for (int64_t d = 0; d < rank; ++d) {
    const bool gone = reduced[static_cast<size_t>(d)];
    if (gone && !keeps) continue;
    if (at++ != q.rows.axis) continue;
    if (gone) return std::nullopt;
    NarrowCall call = q.Whole();
    call.inputs[0] = AtAxis(q.rows, d);
    return call;
  }
  return std::nullopt;
}

struct Rule {
  const char* op;
  Answer (*apply)(const Question&);
};
constexpr Rule kRules[] = {
    {"expand", Expand},       {"matmul", Matmul},        {"layer_norm", Normalized},
    {"rms_norm", Normalized}, {"softmax", AlongOneAxis}, {"log_softmax", AlongOneAxis},
    {"transpose", Transpose}, {"reshape", Reshape},      {"concat", Concat},
    {"attention", Attention}, {"reduce_sum", Reduce},    {"reduce_mean", Reduce},
    {"reduce_max", Reduce},   {"reduce_min", Reduce},
};

}  // namespace

std::optional<NarrowCall> NarrowToRows(const Graph& graph, const Node& node, const Rows& rows) {
  const Question question{graph, node, rows};
  for (const Rule& rule : kRules) {
    if (node.op->name == rule.op) return rule.apply(question);
  }
  if (node.op->elementwise == nullptr || node.outputs.size() != 1) return std::nullopt;
  return Pointwise(question);
}

}  // namespace ridge
