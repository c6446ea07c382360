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
  return MovedOnce(call, static_cast<int64_t>(std::min(pairs * each, 0x1p62)));
}

// [B,H,T] -> [B,H,T,1]
Value AsColumn(GraphBuilder& b, Value rows) {
  Dims dims = b.dims(rows);
  dims.push_back(1);
  return ReshapeExactly(b, rows, dims);
}

const std::string& LayoutText(GradBuilder& g) {
  return std::get<std::string>(g.attrs().at("layout"));
}

// A value that lies as y: as [B,H,T,D].
Value HeadsFirst(GradBuilder& g, Value v) {
  return LayoutText(g) == "heads" ? v : g.b().Transpose(v, {0, 2, 1, 3});
}

// q, k or v (0, 1, 2) as [B,H,T,D].
Value Operand(GradBuilder& g, int64_t part) {
  GraphBuilder& b = g.b();
  if (LayoutText(g) != "packed") return HeadsFirst(g, g.input(static_cast<size_t>(part)));
  const Value cut = b.Op("slice", {g.input(0)},
                         {{"axes", std::vector<int64_t>{2}},
                          {"starts", std::vector<int64_t>{part}},
                          {"ends", std::vector<int64_t>{part + 1}}});
  const Dims d = b.dims(g.input(0));
  return HeadsFirst(g, ReshapeExactly(b, cut, {d[0], d[1], d[3], d[4]}));
}

// exp(score - logsumexp); 0 in the rows that see nothing.
Value Probabilities(GradBuilder& g) {
  GraphBuilder& b = g.b();
  const Value lse = g.output(1);
  const DType dtype = b.type(lse).dtype;
  const AttentionScores scores =
      ComposeAttentionScores(b, Operand(g, 0), Operand(g, 1), g.input(kMask), g.attrs());
  const Value nothing =
      b.Op("equal", {lse, b.Scalar(dtype, -std::numeric_limits<double>::infinity())});
  const Value finite = b.Where(nothing, b.Scalar(dtype, 0), lse);
  return b.Exp(b.Sub(b.Cast(scores.masked, dtype), AsColumn(b, finite)));
}

// dmask = sum over what broadcasts of p * (dy v^T - sum(dy * y) + dlogsumexp).  The scores are
// made whole here: an added mask that is trained is rare, and as large as they are.
void MaskGradient(GradBuilder& g) {
  GraphBuilder& b = g.b();
  const Value mask = g.input(kMask), dy = HeadsFirst(g, g.output_grad(0));
  const DType dtype = b.type(g.output(1)).dtype;
  const Value p = Probabilities(g);
  const Value dp = b.Cast(MultiplyGrouped(b, dy, Operand(g, 2), /*transpose_v=*/true), dtype);
  Value inner =
      b.ReduceSum(b.Cast(b.Mul(dy, HeadsFirst(g, g.output(0))), dtype), {3}, /*keep_dims=*/true);
  if (g.has_output_grad(1)) inner = b.Sub(inner, AsColumn(b, g.output_grad(1)));
  const Value ds = b.Mul(p, b.Sub(dp, inner));
  g.set_input_grad(kMask, b.Cast(b.SumTo(ds, b.dims(mask)), b.type(mask).dtype));
}

// dq, dk, dv = attention_grad(q, k, v, y, logsumexp, dy, mask, dlogsumexp).
void Gradient(GradBuilder& g) {
  GraphBuilder& b = g.b();
  if (g.needs_grad(0) || g.needs_grad(1) || g.needs_grad(2)) {
    const Value dlse = g.has_output_grad(1) ? g.output_grad(1) : Value();
    const std::vector<Value> grads =
        b.OpOutputs("attention_grad",
                    {g.input(0), g.input(1), g.input(2), g.output(0), g.output(1), g.output_grad(0),
                     g.input(kMask), dlse},
                    g.attrs());
    for (size_t i = 0; i < grads.size(); ++i) g.set_input_grad(i, grads[i]);
  }
  if (b.ok() && g.needs_grad(kMask) && b.type(g.input(kMask)).dtype != DType::kBool)
    MaskGradient(g);
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
          "[B,T,3,H,D], which holds q, k and v, and k and v are absent.",
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
      .reference = Reference,
  };
}

}  // namespace ridge
