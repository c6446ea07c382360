// rotary_embedding: pairs of numbers of the last dimension turn by the angle of their position.
//
// Su et al., RoFormer, 2021.  With the pairs (x1, x2) of x, and rotate(x) = (-x2, x1):
//   y = x cos + rotate(x) sin
// Pair i is x[i] and x[i + D/2], or with interleaved=1 x[2i] and x[2i + 1].
#include <fmt/format.h>

#include "ridge/graph/axes.h"
#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/elementwise.h"
#include "ridge/graph/ops/shared/reduce.h"
#include "ridge/graph/ops/shared/slice.h"
#include "ridge/graph/pattern.h"

namespace ridge {
namespace {

bool Broadcasts(const Dims& from, const Dims& to) {
  if (from.size() > to.size()) return false;
  const size_t offset = to.size() - from.size();
  for (size_t d = 0; d < from.size(); ++d) {
    if (from[d] != to[offset + d] && from[d] != 1) return false;
  }
  return true;
}

// A table of cosines or sines: broadcast to x, with a number for each number of x or each pair.
// That of an x of 16 bits may have more.
Status CheckTable(const OpCall& call, size_t i, const char* name) {
  const TensorType &x = call.inputs[0], &table = call.inputs[i];
  Dims each = x.dims, pairs = x.dims;
  pairs.back() /= 2;
  const bool wide = !table.dims.empty() &&
                    (table.dims.back() == each.back() || table.dims.back() == pairs.back());
  const bool is_narrow = Is16BitFloat(x.dtype);
  const bool has_type = table.dtype == x.dtype || (is_narrow && table.dtype == DType::kF32);
  if (!wide || !has_type ||
      !Broadcasts(table.dims, table.dims.back() == each.back() ? each : pairs)) {
    return CallError(
        call, fmt::format("{} is {}; it must be {}{} and broadcast to {}, or {} with a "
                          "number for each pair",
                          name, TypeToString(table), DTypeName(x.dtype), is_narrow ? " or f32" : "",
                          DimsToString(each), DimsToString(pairs)));
  }
  return Status();
}

Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  RIDGE_RETURN_IF_ERROR(CheckFloat(call, 0, "x"));
  RIDGE_RETURN_IF_ERROR(CheckFlag(call, "interleaved"));
  const TensorType& x = call.inputs[0];
  if (x.dims.empty() || x.dims.back() % 2 != 0) {
    return CallError(call, fmt::format("x is {}; its last extent must be even, for numbers that "
                                       "turn in pairs",
                                       TypeToString(x)));
  }
  RIDGE_RETURN_IF_ERROR(CheckTable(call, 1, "cos"));
  RIDGE_RETURN_IF_ERROR(CheckTable(call, 2, "sin"));
  return std::vector<TensorType>{x};
}

// Two multiplications and an addition a number.
Cost EstimateCost(const OpCall& call) { return StreamingCost(call, 3 * call.inputs[0].elements()); }

bool IsInterleaved(const AttrMap& attrs) { return attrs.integer("interleaved") != 0; }

// The first (0) or second (1) numbers of the pairs.
Value PartOfPairs(GraphBuilder& b, Value v, int64_t part, bool interleaved) {
  if (!b.ok()) return {};
  const int64_t width = v.dims().back(), half = width / 2;
  const std::vector<int64_t> starts = {interleaved ? part : part * half};
  const std::vector<int64_t> ends = {interleaved ? width : (part + 1) * half};
  return Op("slice", {v},
            {{"axes", {-1}}, {"starts", starts}, {"ends", ends}, {"steps", {interleaved ? 2 : 1}}});
}

// (-v2, w v1) for the pairs (v1, v2) of v.
Value Exchanged(GradBuilder& g, Value v, double w) {
  GraphBuilder& b = g.b();
  if (!b.ok()) return {};
  const TensorType row{v.dtype(), {v.dims().back()}};
  const bool interleaved = IsInterleaved(g.attrs());
  Tensor none(row), weights(row);
  for (int64_t k = 0; k < row.elements(); ++k) {
    const bool second = interleaved ? k % 2 == 1 : k >= row.elements() / 2;
    StoreFromDouble(row.dtype, none.mutable_data(), k, 0);
    StoreFromDouble(row.dtype, weights.mutable_data(), k, second ? w : 1);
  }
  return Op("rotary_embedding",
            {v, b.Constant(std::move(none), "zeros"), b.Constant(std::move(weights), "weights")},
            g.attrs());
}

// x = y cos + rotate(y) t: t is -sin, with the two numbers of a pair exchanged.
Value SineBack(GradBuilder& g) {
  GraphBuilder& b = g.b();
  const Value sin = g.x(2);
  if (!b.ok() || sin.dims().back() != g.x().dims().back()) return -sin;
  return Exchanged(g, sin, -1);
}

// A gradient [.., D] as the table has its numbers: those of a pair summed where they share one.
Value AsTable(GradBuilder& g, Value each, size_t table) {
  GraphBuilder& b = g.b();
  const bool interleaved = IsInterleaved(g.attrs());
  if (!b.ok() || g.x(table).dims().back() == each.dims().back()) return each;
  const Value second = PartOfPairs(b, each, 1, interleaved);
  return PartOfPairs(b, each, 0, interleaved) + second;
}

void Gradient(GradBuilder& g) {
  const Value x = g.x(), dy = g.dy();
  if (g.needs_dx(0)) g.dx() = Op("rotary_embedding", {dy, g.x(1), SineBack(g)}, g.attrs());
  if (g.needs_dx(1)) g.dx(1) = AsTable(g, dy * x, 1);
  if (g.needs_dx(2)) g.dx(2) = AsTable(g, dy * Exchanged(g, x, 1), 2);
}

// Where the rows of x find theirs in a table: first elements, row after row.
std::vector<int64_t> TableRows(const Dims& x, const Dims& table) {
  const Dims rows(x.begin(), x.end() - 1), own(table.begin(), table.end() - 1);
  std::vector<int64_t> first(static_cast<size_t>(ElementCount(rows)));
  ForEachStrided(rows, BroadcastStrides(own, rows), 0, [&](int64_t row, int64_t at) {
    first[static_cast<size_t>(row)] = at * table.back();
  });
  return first;
}

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const Dims& dims = call.inputs[0].dims;
  const bool interleaved = IsInterleaved(call.attrs);
  const int64_t width = dims.back(), half = width / 2;
  const auto number = [&](size_t table, int64_t row, int64_t pair, int64_t place) {
    const bool each = call.inputs[table].dims.back() == width;
    return in[table][row + (each ? place : pair)];
  };
  const std::vector<int64_t> cos = TableRows(dims, call.inputs[1].dims);
  const std::vector<int64_t> sin = TableRows(dims, call.inputs[2].dims);
  for (size_t r = 0; r < cos.size(); ++r) {
    const double* x = in[0] + static_cast<int64_t>(r) * width;
    double* y = out[0] + static_cast<int64_t>(r) * width;
    for (int64_t i = 0; i < half; ++i) {
      const int64_t p = interleaved ? 2 * i : i, q = interleaved ? p + 1 : p + half;
      const double x1 = x[p], x2 = x[q];
      y[p] = x1 * number(1, cos[r], i, p) - x2 * number(2, sin[r], i, p);
      y[q] = x2 * number(1, cos[r], i, q) + x1 * number(2, sin[r], i, q);
    }
  }
}

// All dimensions but the last.
Axes FindAxes(const OpCall& call) {
  Axes axes;
  for (int d = 0; d + 1 < call.inputs[0].rank(); ++d)
    axes.push_back(Mapped(call, {d, BroadcastAxis(call, 1, d), BroadcastAxis(call, 2, d)}, d));
  return axes;
}

// rotate(x) as exporters write it, and the results on the way to x.
struct Rotation {
  ValueId x = kNoValue;
  bool interleaved = false;
  std::vector<ValueId> inner = {};
};

// The first (0) or second (1) numbers of the pairs of a value; kNoValue for other slices.
ValueId PairsOf(const Graph& graph, ValueId id, int64_t part, bool interleaved) {
  const Node* slice = graph.producer(id, "slice");
  if (slice == nullptr) return kNoValue;
  const Dims& dims = graph.type(slice->inputs[0]).dims;
  const Result<std::vector<AxisSlice>> ranges = AxisSlices(graph.Call(*slice), dims);
  if (!ranges.ok() || dims.empty() || dims.back() % 2 != 0) return kNoValue;
  for (size_t d = 0; d + 1 < dims.size(); ++d) {
    const AxisSlice& range = (*ranges)[d];
    if (range.start != 0 || range.step != 1 || range.count != dims[d]) return kNoValue;
  }
  const int64_t half = dims.back() / 2;
  const AxisSlice& range = ranges->back();
  const bool pairs = range.start == (interleaved ? part : part * half) &&
                     (range.step == (interleaved ? 2 : 1) || half == 1) && range.count == half;
  return pairs ? slice->inputs[0] : kNoValue;
}

// concat(-x2, x1) along the last dimension; interleaved: of x2 and x1 with an extent of 1 behind,
// which a reshape drops again.
Rotation MatchRotation(const Graph& graph, ValueId id) {
  Rotation found{.inner = {id}};
  const Node* joined = graph.producer(id);
  found.interleaved = joined != nullptr && joined->op->name == "reshape";
  if (found.interleaved) {
    found.inner.push_back(joined->inputs[0]);
    joined = graph.producer(joined->inputs[0], "concat");
  }
  if (joined == nullptr || joined->op->name != "concat" || joined->inputs.size() != 2) return {};
  const int last = graph.type(joined->outputs[0]).rank() - 1;
  const auto axis = joined->attrs.integer("axis");
  if (axis != last && axis != -1) return {};
  ValueId parts[2] = {joined->inputs[1], joined->inputs[0]};
  for (ValueId& part : parts) {
    found.inner.push_back(part);
    if (!found.interleaved) continue;
    const Node* column = graph.producer(part, "reshape");
    if (column == nullptr || graph.type(part).dims.back() != 1) return {};
    part = column->inputs[0];
    found.inner.push_back(part);
  }
  const Node* negated = graph.producer(parts[1], "neg");
  if (negated == nullptr) return {};
  found.inner.push_back(negated->inputs[0]);
  found.x = PairsOf(graph, negated->inputs[0], 1, found.interleaved);
  const bool same = found.x != kNoValue && graph.type(id) == graph.type(found.x) &&
                    PairsOf(graph, parts[0], 0, found.interleaved) == found.x;
  return same ? found : Rotation{};
}

// `turned` = rotate(x) * sin, `kept` = x * cos.
PatternMatch MatchSum(const Graph& graph, ValueId kept, ValueId turned) {
  const Node* left = graph.producer(kept, "mul");
  const Node* right = graph.producer(turned, "mul");
  if (left == nullptr || right == nullptr) return {};
  for (size_t i = 0; i < 2; ++i) {
    Rotation rotation = MatchRotation(graph, right->inputs[i]);
    for (size_t j = 0; j < 2 && rotation.x != kNoValue; ++j) {
      if (left->inputs[j] != rotation.x) continue;
      PatternMatch match{FindOp("rotary_embedding"),
                         {rotation.x, left->inputs[1 - j], right->inputs[1 - i]},
                         {{"interleaved", rotation.interleaved}},
                         std::move(rotation.inner)};
      match.inner.insert(match.inner.end(), {kept, turned});
      return match;
    }
  }
  return {};
}

// x * cos + rotate(x) * sin, with a number of the tables for each of x.
PatternMatch MatchRotary(const Graph& graph, const Node& root) {
  if (root.op->name != "add") return {};
  for (size_t i = 0; i < 2; ++i) {
    const PatternMatch match = MatchSum(graph, root.inputs[i], root.inputs[1 - i]);
    if (match.op == nullptr) continue;
    const TensorType& x = graph.type(match.inputs[0]);
    const auto is_table = [&](ValueId id) {
      const TensorType& table = graph.type(id);
      return table.dtype == x.dtype && !table.dims.empty() && table.dims.back() == x.dims.back() &&
             Broadcasts(table.dims, x.dims);
    };
    if (is_table(match.inputs[1]) && is_table(match.inputs[2])) return match;
  }
  return {};
}

}  // namespace

OpDef RotaryEmbeddingDef() {
  return {
      .name = "rotary_embedding",
      .doc =
          "y = x cos + rotate(x) sin, rotate(x) = (-x2, x1) for the pairs (x1, x2) of the last "
          "dimension: x[i] and x[i + D/2], or with interleaved=1 x[2i] and x[2i + 1]. cos and sin "
          "broadcast to x; their last extent is D, or D/2 where the numbers of a pair share one.",
      .input_names = {"x", "cos", "sin"},
      .output_names = {"y"},
      .attr_defaults = {{"interleaved", 0}},
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .gradient = Gradient,
      .in_place = {{0, 0}},
      .recompute = Recompute::kCheap,
      .onnx = {"RotaryEmbedding", 23, 23},
      .pattern = MatchRotary,
      .axes = FindAxes,
      .linear = Linear::kFirst,
      .reference = Reference,
  };
}

}  // namespace ridge
