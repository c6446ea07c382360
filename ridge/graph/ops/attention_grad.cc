// attention_grad: dq, dk and dv of attention, from its logsumexp.
//
// With p = exp(score - logsumexp), dp = dy v^T and delta = sum(dy * y) - dlogsumexp:
// dv = p^T dy, ds = scale * slope * p * (dp - delta), dq = ds k, dk = ds^T q, where slope is the
// derivative of the soft cap.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ridge/graph/axes.h"
#include "ridge/graph/ops/shared/attention.h"
#include "ridge/graph/ops/shared/checks.h"

namespace ridge {
namespace {

constexpr size_t kY = 3, kLogSumExp = 4, kDy = 5, kMask = 6, kDLogSumExp = 7;

// q, k, v, mask: as attention.  y, dy: [B,H,T,Dv].  logsumexp, dlogsumexp: [B,H,T].
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  RIDGE_RETURN_IF_ERROR(CheckAttention(call, kMask));
  const AttentionExtents e = ExtentsOf(call);
  const TensorType y{call.inputs[0].dtype, AttentionResultDims(call)};
  const TensorType rows{StatisticDType(y.dtype), {e.batch, e.heads, e.queries}};
  RIDGE_RETURN_IF_ERROR(CheckType(call, kY, "y", y, "the output of attention"));
  RIDGE_RETURN_IF_ERROR(CheckType(call, kLogSumExp, "logsumexp", rows, "one number a query"));
  RIDGE_RETURN_IF_ERROR(CheckType(call, kDy, "dy", y, "the output of attention"));
  if (call.has_input(kDLogSumExp)) {
    RIDGE_RETURN_IF_ERROR(CheckType(call, kDLogSumExp, "dlogsumexp", rows, "one number a query"));
  }
  if (IsPacked(call)) return std::vector<TensorType>{call.inputs[0]};
  return std::vector<TensorType>{call.inputs[0], call.inputs[1], call.inputs[2]};
}

// A visible pair: five products, and subtract, exp, subtract, two multiplications.
Cost EstimateCost(const OpCall& call) {
  const AttentionExtents e = ExtentsOf(call);
  const double pairs = VisiblePairs(call) * static_cast<double>(e.batch * e.heads);
  const double each = static_cast<double>(6 * e.head_dim + 4 * e.value_dim) + 5;
  return StreamingCost(call, static_cast<int64_t>(std::min(pairs * each, 0x1p62)));
}

// to += factor * from, `count` elements.
void AddScaled(double factor, const double* from, double* to, int64_t count) {
  for (int64_t c = 0; c < count; ++c) to[c] += factor * from[c];
}

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  AttentionRow row(call, kMask, in);
  const AttentionExtents& e = row.extents();
  const AttentionViews& views = row.views();
  const double scale = call.number("scale");
  for (size_t i = 0; i < out.size(); ++i) std::fill_n(out[i], call.outputs[i].elements(), 0.0);
  double *dk = out[views.k_operand], *dv = out[views.v_operand];
  for (int64_t r = 0; r < e.batch * e.heads * e.queries; ++r) {
    const int64_t b = r / e.queries / e.heads, h = r / e.queries % e.heads, i = r % e.queries;
    row.Compute(b, h, i);
    const double *y = in[kY] + views.y.At(b, h, i), *dy = in[kDy] + views.y.At(b, h, i);
    const int64_t q_at = views.q.At(b, h, i);
    double delta = std::inner_product(y, y + e.value_dim, dy, 0.0);
    if (call.has_input(kDLogSumExp)) delta -= in[kDLogSumExp][r];
    for (int64_t j = 0; j < e.keys; ++j) {
      const auto at = static_cast<size_t>(j);
      if (std::isinf(row.score[at]) && row.score[at] < 0) continue;  // hidden
      const int64_t k_at = views.k.At(b, h / e.group(), j), v_at = views.v.At(b, h / e.group(), j);
      const double p = std::exp(row.score[at] - in[kLogSumExp][r]);
      const double dp = std::inner_product(dy, dy + e.value_dim, in[views.v_operand] + v_at, 0.0);
      const double ds = scale * row.slope[at] * p * (dp - delta);
      AddScaled(ds, in[views.k_operand] + k_at, out[0] + q_at, e.head_dim);
      AddScaled(ds, in[0] + q_at, dk + k_at, e.head_dim);
      AddScaled(p, dy, dv + v_at, e.value_dim);
    }
  }
}

// As attention; dk and dv are summed over what k and v have no part of.
Axes FindSharedAxes(const OpCall& call) {
  Axes axes;
  for (const AttentionIndex& i : AttentionIndices(call, kMask)) {
    axes.push_back(FactorOf(call, {i.q, i.kv, i.kv, i.y, i.rows, i.y, i.mask, i.rows},
                            {i.q, i.kv, i.kv}, Factor::Over::kSum));
  }
  return axes;
}

}  // namespace

OpDef AttentionGradDef() {
  return {
      .name = "attention_grad",
      .doc =
          "dq, dk, dv of attention, from its inputs, y, logsumexp, dy, and dlogsumexp where that "
          "was read: p = exp(score - logsumexp); dv = p^T dy; ds = p * (dy v^T - sum(dy * y) + "
          "dlogsumexp); dq = scale * ds k; dk = scale * ds^T q. They lie as q, k, v; layout=packed "
          "gives "
          "one output that holds all three.",
      .input_names = {"q", "k?", "v?", "y", "logsumexp", "dy", "mask?", "dlogsumexp?"},
      .output_names = {"dq", "dk", "dv"},
      .attr_defaults = AttentionAttrs(),
      .required_attrs = {"scale"},
      .cost_class = CostClass::kMatmul,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .recompute = Recompute::kExpensive,
      .shared_axes = FindSharedAxes,
      .reference = Reference,
  };
}

}  // namespace ridge
