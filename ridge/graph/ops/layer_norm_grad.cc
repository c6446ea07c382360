// layer_norm_grad: dx, and with a scale dscale and dshift, of layer_norm, from dy.
#include <algorithm>

#include "ridge/graph/axes.h"
#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/norm.h"

namespace ridge {
namespace {

// x: float, rank >= 1.  dy: float, as x in another dtype perhaps.  mean, rstd: x.dims[..axis).
// scale: x.dims[axis..). dx: as x.  dscale, dshift: as scale.
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  const TensorType& x = call.inputs[0];
  RIDGE_RETURN_IF_ERROR(CheckFloat(call, 0, "x"));
  RIDGE_ASSIGN_OR_RETURN(const int axis, CheckAxis(call, "x"));
  const DType dtype = StatisticDType(x.dtype);
  const TensorType statistic{dtype, LeadingDims(x.dims, axis)};
  const TensorType row{dtype, TrailingDims(x.dims, axis)};
  const char* why = "the dimensions of x before axis";
  RIDGE_RETURN_IF_ERROR(CheckType(call, 1, "mean", statistic, why));
  RIDGE_RETURN_IF_ERROR(CheckType(call, 2, "rstd", statistic, why));
  RIDGE_RETURN_IF_ERROR(CheckFloat(call, 3, "dy"));
  RIDGE_RETURN_IF_ERROR(CheckType(call, 3, "dy", {call.inputs[3].dtype, x.dims}, "as x"));
  if (!call.has_input(4)) return std::vector<TensorType>{x};
  RIDGE_RETURN_IF_ERROR(CheckType(call, 4, "scale", row, "the dimensions of x from axis on"));
  return std::vector<TensorType>{x, row, row};
}

// Per element: normalize (2), two sums (3), dx (5); with a scale: apply it (1), its gradients (3).
Cost EstimateCost(const OpCall& call) {
  return StreamingCost(call, (call.has_input(4) ? 14 : 10) * call.inputs[0].elements());
}

// dn = dy * scale; dx = rstd * (dn - mean(dn) - n * mean(dn * n)), the means over the row.
void RowGradient(const double* n, const double* dn, int64_t width, double rstd, double* dx) {
  double sum = 0, dot = 0;
  for (int64_t k = 0; k < width; ++k) {
    sum += dn[k];
    dot += dn[k] * n[k];
  }
  const auto count = static_cast<double>(width);
  for (int64_t k = 0; k < width; ++k) dx[k] = rstd * (dn[k] - sum / count - n[k] * dot / count);
}

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const AxisView view = ViewTrailing(call.inputs[0].dims, CallAxis(call));
  const int64_t width = view.extent;
  const double *mean = in[1], *rstd = in[2];
  const double* scale = call.has_input(4) ? in[4] : nullptr;
  for (size_t k = 1; k < out.size(); ++k) std::fill_n(out[k], width, 0.0);
  std::vector<double> n(static_cast<size_t>(width)), dn(static_cast<size_t>(width));
  for (int64_t row = 0; row < view.outer; ++row) {
    const double *x = in[0] + row * width, *dy = in[3] + row * width;
    for (int64_t k = 0; k < width; ++k) {
      const auto at = static_cast<size_t>(k);
      n[at] = (x[k] - mean[row]) * rstd[row];
      dn[at] = dy[k] * (scale == nullptr ? 1 : scale[k]);
      if (scale == nullptr) continue;
      out[1][k] += dy[k] * n[at];  // dscale
      out[2][k] += dy[k];          // dshift
    }
    RowGradient(n.data(), dn.data(), width, rstd[row], out[0] + row * width);
  }
}

// The dimensions before `axis`, over which dscale and dshift are summed.
Axes FindSharedAxes(const OpCall& call) {
  Axes axes;
  for (int d = 0; d < CallAxis(call); ++d)
    axes.push_back(FactorOf(call, {d, d, d, d}, {d}, Factor::Over::kSum));
  return axes;
}

}  // namespace

OpDef LayerNormGradDef() {
  return {
      .name = "layer_norm_grad",
      .doc =
          "The gradients in layer_norm, from x, its mean and rstd, dy and scale: with n = (x - "
          "mean) * rstd and dn = dy * scale, dx = rstd * (dn - mean(dn) - n * mean(dn * n)). "
          "With a scale also dscale = sum(dy * n) and dshift = sum(dy), summed over the "
          "dimensions before `axis`.",
      .input_names = {"x", "mean", "rstd", "dy", "scale?"},
      .output_names = {"dx", "dscale", "dshift"},
      .attr_defaults = {{"axis", -1}},
      .cost_class = CostClass::kNorm,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .in_place = {{0, 3}},
      .recompute = Recompute::kCheap,
      .shared_axes = FindSharedAxes,
      .reference = Reference,
  };
}

}  // namespace ridge
