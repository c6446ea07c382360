// attention: y = softmax(scale * q k^T + mask) v, for each batch and head.
//
// Vaswani et al., 2017; tile by tile with a running maximum as Dao et al., FlashAttention, 2022.
// Scores of shape T x S never exist whole: the log of each row's sum of exponentials is kept, and
// the gradient computes the probabilities again from it.  A query that sees no key gets y = 0 and
// logsumexp = -inf.
#include "ridge/graph/ops/shared/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ridge/graph/axes.h"
#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/reduce.h"

namespace ridge {
namespace {

constexpr size_t kMask = 3;

// q: float [B,H,T,D].  k: [B,Hkv,S,D].  v: [B,Hkv,S,Dv].  mask: bool or float, to [B,H,T,S].
// y: [B,H,T,Dv].  logsumexp: [B,H,T].
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  RIDGE_RETURN_IF_ERROR(CheckAttention(call, kMask));
  const AttentionExtents e = ExtentsOf(call);
  const TensorType y{call.inputs[0].dtype, AttentionResultDims(call)};
  RIDGE_RETURN_IF_ERROR(CheckDims(y.dims));
  return std::vector<TensorType>{y, {StatisticDType(y.dtype), {e.batch, e.heads, e.queries}}};
}

// A visible pair: two products, and max, subtract, exp, add, scale.
Cost EstimateCost(const OpCall& call) {
  const AttentionExtents e = ExtentsOf(call);
  const double pairs = VisiblePairs(call) * static_cast<double>(e.batch * e.heads);
  const double each = 2 * static_cast<double>(e.head_dim + e.value_dim) + 5;
  return StreamingCost(call, static_cast<int64_t>(std::min(pairs * each, 0x1p62)));
}

// [B,H,T] -> [B,H,T,1]
Value AsColumn(Value rows) {
  Dims dims = rows.dims();
  dims.push_back(1);
  return ReshapeExactly(rows, dims);
}

const std::string& LayoutText(GradBuilder& g) { return g.text("layout"); }

// A value that lies as y: as [B,H,T,D].
Value HeadsFirst(GradBuilder& g, Value v) {
  return LayoutText(g) == "heads" ? v : Transpose(v, {0, 2, 1, 3});
}

// q, k or v (0, 1, 2) as [B,H,T,D].
Value Operand(GradBuilder& g, int64_t part) {
  if (LayoutText(g) != "packed") return HeadsFirst(g, g.x(static_cast<size_t>(part)));
  const Value cut = Slice(g.x(), 2, part, part + 1);
  const Dims d = g.x().dims();
  return HeadsFirst(g, ReshapeExactly(cut, {d[0], d[1], d[3], d[4]}));
}

// exp(score - logsumexp); 0 in the rows that see nothing.
Value Probabilities(GradBuilder& g) {
  GraphBuilder& b = g.b();
  const Value lse = g.y(1);
  const DType dtype = lse.dtype();
  const Value k = Operand(g, 1), q = Operand(g, 0);
  const AttentionScores scores = ComposeAttentionScores(b, q, k, g.x(kMask), g.attrs());
  const Value nothing = Equal(lse, -std::numeric_limits<double>::infinity());
  const Value finite = Where(nothing, ScalarLike(lse, 0), lse);
  const Value column = AsColumn(finite);
  return Exp(Cast(scores.masked, dtype) - column);
}

// dmask = sum over what broadcasts of p * (dy v^T - sum(dy * y) + dlogsumexp).  The scores are
// made whole here: an added mask that is trained is rare, and as large as they are.
void MaskGradient(GradBuilder& g) {
  const Value mask = g.x(kMask), dy = HeadsFirst(g, g.dy());
  const DType dtype = g.y(1).dtype();
  const Value p = Probabilities(g);
  const Value dp = Cast(MultiplyGrouped(dy, Operand(g, 2), /*transpose_v=*/true, g.attrs()), dtype);
  Value inner = Sum(Cast(dy * HeadsFirst(g, g.y()), dtype), {3}, /*keep_dims=*/true);
  if (g.has_dy(1)) inner = inner - AsColumn(g.dy(1));
  const Value ds = p * (dp - inner);
  g.dx(kMask) = Cast(SumTo(ds, mask.dims()), mask.dtype());
}

// dq, dk, dv = attention_grad(q, k, v, y, logsumexp, dy, mask, dlogsumexp).
void Gradient(GradBuilder& g) {
  GraphBuilder& b = g.b();
  if (g.needs_dx(0) || g.needs_dx(1) || g.needs_dx(2)) {
    const Value dlse = g.has_dy(1) ? g.dy(1) : Value();
    const std::vector<Value> grads =
        OpOutputs("attention_grad",
                  {g.x(), g.x(1), g.x(2), g.y(), g.y(1), g.dy(), g.x(kMask), dlse}, g.attrs());
    for (size_t i = 0; i < grads.size(); ++i) g.dx(i) = grads[i];
  }
  if (b.ok() && g.needs_dx(kMask) && g.x(kMask).dtype() != DType::kBool) MaskGradient(g);
}

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  AttentionRow row(call, kMask, in);
  const AttentionExtents& e = row.extents();
  const AttentionViews& views = row.views();
  for (int64_t r = 0; r < e.batch * e.heads * e.queries; ++r) {
    const int64_t b = r / e.queries / e.heads, h = r / e.queries % e.heads, i = r % e.queries;
    row.Compute(b, h, i);
    double max = -std::numeric_limits<double>::infinity();  // so that exp cannot overflow
    for (double s : row.score) max = std::max(max, s);
    const double base = std::isinf(max) && max < 0 ? 0 : max;
    double* y = out[0] + views.y.At(b, h, i);
    std::fill_n(y, e.value_dim, 0.0);
    double sum = 0;
    for (int64_t j = 0; j < e.keys; ++j) {
      const double p = std::exp(row.score[static_cast<size_t>(j)] - base);
      const double* v = in[views.v_operand] + views.v.At(b, h / e.group(), j);
      sum += p;
      for (int64_t c = 0; p != 0 && c < e.value_dim; ++c) y[c] += p * v[c];
    }
    for (int64_t c = 0; sum != 0 && c < e.value_dim; ++c) y[c] /= sum;
    out[1][r] = base + std::log(sum);
  }
}

// The batch, and the queries, whose position decides what they see.
Axes FindAxes(const OpCall& call) {
  constexpr size_t kMask = 3;
  constexpr int kRank = 4;  // of the scores, to which the mask broadcasts
  const auto mask_axis = [&](int axis) {
    if (!call.has_input(kMask)) return Factor::kNone;
    return std::max(axis - (kRank - call.inputs[kMask].rank()), Factor::kNone);
  };
  Factor batch = Mapped(call, {0, 0, 0, mask_axis(0)}, 0);
  const std::string& layout = call.text("layout");
  if (layout == "packed") return {batch};
  Factor queries = Mapped(call, {2, Factor::kNone, Factor::kNone, mask_axis(2)}, 2);
  if (layout == "rows") queries.inputs[0] = queries.outputs[0] = 1;
  queries.offset_attr = "causal_offset";
  return {batch, queries};
}

Axes FindSharedAxes(const OpCall& call) {
  Axes axes;
  for (const AttentionIndex& index : AttentionIndices(call, kMask))
    axes.push_back(
        FactorOf(call, {index.q, index.kv, index.kv, index.mask}, {index.y, index.rows}));
  return axes;
}

}  // namespace

OpDef AttentionDef() {
  return {
      .name = "attention",
      .doc =
          "y [B,H,T,Dv] = softmax(cap(scale * q k^T) + mask) v for q [B,H,T,D], k [B,Hkv,S,D], v "
          "[B,Hkv,S,Dv]; H is a multiple of Hkv, head h of q reads head h / (H / Hkv) of k. cap(x) "
          "= softcap * tanh(x / softcap), nothing for softcap=0. mask broadcasts to [B,H,T,S]: "
          "floats are added, false hides. causal=1 hides key j from query i where j > i + "
          "causal_offset. logsumexp [B,H,T] of the scores is kept for the gradient; a query that "
          "sees nothing has y = 0. layout=rows: q, k, v, y are [B,T,H,D]; layout=packed: q is "
          "[B,T,3,H,D], which holds q, k and v, and k and v are absent. With keep_f32=1 mixed "
          "precision leaves it and its gradient in f32.",
      .input_names = {"q", "k?", "v?", "mask?"},
      .output_names = {"y", "logsumexp"},
      .attr_defaults = AttentionAttrs(),
      .required_attrs = {"scale"},
      .cost_class = CostClass::kMatmul,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .gradient = Gradient,
      .recompute = Recompute::kExpensive,
      .onnx = {"Attention", 23, 23, 23},
      .axes = FindAxes,
      .shared_axes = FindSharedAxes,
      .reference = Reference,
  };
}

}  // namespace ridge
