#include <cmath>
#include <limits>

#include "tests/generate/families.h"

namespace ridge {
namespace {

struct Extents {
  int64_t batch, queries, keys, heads, kv_heads, width;
};

Tensor CausalMask(int64_t queries, int64_t keys, bool as_bool, double low) {
  Tensor mask({as_bool ? DType::kBool : DType::kF64, {queries, keys}});
  for (int64_t i = 0; i < queries * keys; ++i) {
    const bool hidden = i % keys > i / keys + keys - queries;
    StoreFromDouble(mask.type().dtype, mask.mutable_data(), i,
                    as_bool ? (hidden ? 0 : 1) : (hidden ? low : 0));
  }
  return mask;
}

Value Project(Sketch& s, Value x, int64_t out) {
  const Value w = s.Parameter({s.dims(x).back(), out}, 0.8);
  return s.Op("matmul", {x, w, s.dice.Percent(30) ? s.Parameter({out}) : Sketch::Absent()});
}

// [B,T,C]
Value Tokens(Sketch& s) {
  const Value x = s.AsRank(s.Any(), 3);
  return x.valid() && s.elements(x) <= 64 ? x : Value{};
}

struct Operands {
  Value q, k, v;  // [B,H,T,D]
};

// Three products, or one that is cut: by columns, or behind one transpose.
Operands Project(Sketch& s, Value x, const Extents& e) {
  const Dims rows = {e.batch, e.queries, e.heads, e.width};
  const std::vector<int64_t> to_heads = {0, 2, 1, 3};
  const int64_t all = e.heads * e.width, kind = s.dice.Below(3);
  const auto heads = [&](Value flat) { return s.Transpose(s.Reshape(flat, rows), to_heads); };
  if (kind == 0)
    return {heads(Project(s, x, all)), heads(Project(s, x, all)), heads(Project(s, x, all))};
  const Value joined = Project(s, x, 3 * all);
  if (kind == 1) {
    return {heads(s.Slice(joined, 2, 0, all)), heads(s.Slice(joined, 2, all, 2 * all)),
            heads(s.Slice(joined, 2, 2 * all, 3 * all))};
  }
  const Value stack =
      s.Transpose(s.Reshape(joined, {e.batch, e.queries, 3, e.heads, e.width}), {2, 0, 3, 1, 4});
  const Dims each = {e.batch, e.heads, e.queries, e.width};
  return {s.Reshape(s.Slice(stack, 0, 0, 1), each), s.Reshape(s.Slice(stack, 0, 1, 2), each),
          s.Reshape(s.Slice(stack, 0, 2, 3), each)};
}

Value Masked(Sketch& s, Value scores) {
  const int64_t queries = s.extent(scores, 2), keys = s.extent(scores, 3);
  const double low = s.dice.Percent(50) ? -std::numeric_limits<double>::infinity() : -1e9;
  switch (s.dice.Below(4)) {
    case 0:
      return scores;
    case 1:
      return s.MaskedOp("add", {scores, s.Constant(CausalMask(queries, keys, false, low))});
    case 2:
      return s.MaskedOp("where",
                        {s.Constant(CausalMask(queries, keys, true, 0)), scores, s.Scalar(low)});
    default:
      return s.Add(scores, s.dice.Percent(50) ? s.Frozen({queries, keys})
                                              : s.Parameter({1, 1, queries, keys}));
  }
}

}  // namespace

void DrawAttentionNodes(Sketch& s) {
  const Value x = Tokens(s);
  if (!x.valid()) return;
  const Extents e = {s.extent(x, 0),   s.extent(x, 1), s.extent(x, 1), s.dice.From(1, 2), 0,
                     s.dice.From(1, 3)};
  const Operands o = Project(s, x, e);
  const bool transposed = s.dice.Percent(50);
  const double scale = 1 / std::sqrt(static_cast<double>(e.width));
  const bool before = s.dice.Percent(30);
  const Value q = before && o.q.valid() ? s.Times(o.q, scale) : o.q;
  const Value k = transposed && o.k.valid() ? s.Transpose(o.k, {0, 1, 3, 2}) : o.k;
  Value scores = s.Op("matmul", {q, k}, {{"transpose_b", !transposed}});
  if (!scores.valid()) return;
  if (!before)
    scores = s.dice.Percent(50) ? s.Times(scores, scale) : s.Div(scores, s.Scalar(1 / scale));
  if (s.dice.Percent(20)) scores = s.Times(s.Op("tanh", {s.Times(scores, 0.5)}), 2);
  if (!scores.valid()) return;
  const Value weights = s.Op("softmax", {Masked(s, scores)});
  Value y = s.Transpose(s.Op("matmul", {weights, o.v}), {0, 2, 1, 3});
  if (!y.valid()) return;
  y = s.Reshape(y, {e.batch, e.queries, e.heads * e.width});
  s.Keep(y);
  if (s.dice.Percent(60)) s.Keep(Project(s, y, s.dice.From(1, 4)));
  if (s.dice.Percent(10)) s.Keep(weights);
}

void DrawAttention(Sketch& s) {
  const Value x = Tokens(s);
  if (!x.valid()) return;
  const int64_t batch = s.extent(x, 0), time = s.extent(x, 1), width = s.dice.From(1, 3);
  const int64_t kv = s.dice.From(1, 2), heads = kv * s.dice.From(1, 2);
  AttrMap attrs = {{"scale", s.dice.Between(0.3, 1)}};
  if (s.dice.Percent(40)) attrs["causal"] = 1;
  if (s.dice.Percent(20)) attrs["softcap"] = 2.0;
  const Value mask = s.dice.Percent(30) ? s.Parameter({1, heads, 1, time}) : Sketch::Absent();
  const int64_t kind = s.dice.Below(3);
  if (kind == 0) {
    attrs["layout"] = "packed";
    const Value all = Project(s, x, 3 * heads * width);
    if (!all.valid()) return;
    const Value qkv = s.Reshape(all, {batch, time, 3, heads, width});
    return s.Keep(
        s.Outputs("attention", {qkv, Sketch::Absent(), Sketch::Absent(), mask}, attrs)[0]);
  }
  const Value q = Project(s, x, heads * width), k = Project(s, x, kv * width),
              v = Project(s, x, kv * width);
  if (!q.valid() || !k.valid() || !v.valid()) return;
  const Dims q_rows = {batch, time, heads, width}, kv_rows = {batch, time, kv, width};
  std::vector<Value> inputs = {s.Reshape(q, q_rows), s.Reshape(k, kv_rows), s.Reshape(v, kv_rows)};
  if (kind == 1) attrs["layout"] = "rows";
  if (kind == 2) {
    for (Value& input : inputs) input = s.Transpose(input, {0, 2, 1, 3});
  }
  inputs.push_back(mask);
  const std::vector<Value> outputs = s.Outputs("attention", inputs, attrs);
  s.Keep(outputs[0]);
  if (s.dice.Percent(15)) s.Keep(outputs[1]);
}

// Without projections between: what one writes is what the next reads, turned or as it lies.
void DrawAxialAttention(Sketch& s) {
  Value x = s.AsRank(s.Any(), 4);
  if (!x.valid() || s.elements(x) > 100) return;
  for (int64_t times = s.dice.From(1, 3); times > 0 && x.valid(); --times) {
    if (s.dice.Percent(70)) x = s.Transpose(x, {0, 2, 1, 3});
    if (!x.valid()) return;
    const Value k = s.dice.Percent(50) ? x : RandomActivation(s, x);
    const std::vector<Value> made = s.Outputs("attention", {x, k, x}, {{"scale", 0.5}});
    x = made[0];
    if (x.valid() && s.dice.Percent(60)) x = s.Transpose(x, {0, 2, 1, 3});
  }
  s.Keep(x);
}

}  // namespace ridge
