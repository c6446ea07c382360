// rms_norm_grad: dx, and with a scale dscale, of rms_norm, from dy.
#include <algorithm>

#include "ridge/graph/axes.h"
#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/norm.h"

namespace ridge {
namespace {

// x, dy: float, rank >= 1.  rstd: x.dims[..axis).  scale: x.dims[axis..).  dx: as x.  dscale: as
// scale.
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  const TensorType& x = call.inputs[0];
  RIDGE_RETURN_IF_ERROR(CheckFloat(call, 0, "x"));
  RIDGE_ASSIGN_OR_RETURN(const int axis, CheckAxis(call, "x"));
  const DType dtype = StatisticDType(x.dtype);
  const TensorType statistic{dtype, LeadingDims(x.dims, axis)};
  const TensorType row{dtype, TrailingDims(x.dims, axis)};
  RIDGE_RETURN_IF_ERROR(CheckType(call, 1, "rstd", statistic, "the dimensions of x before axis"));
  RIDGE_RETURN_IF_ERROR(CheckType(call, 2, "dy", x, "the type of x"));
  if (!call.has_input(3)) return std::vector<TensorType>{x};
  RIDGE_RETURN_IF_ERROR(CheckType(call, 3, "scale", row, "the dimensions of x from axis on"));
  return std::vector<TensorType>{x, row};
}

// Per element: normalize (1), a sum (2), dx (3); with a scale: apply it (1), its gradient (2).
Cost EstimateCost(const OpCall& call) {
  return StreamingCost(call, (call.has_input(3) ? 9 : 6) * call.inputs[0].elements());
}

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const AxisView view = ViewTrailing(call.inputs[0].dims, CallAxis(call));
  const int64_t width = view.extent;
  const double* scale = call.has_input(3) ? in[3] : nullptr;
  if (scale != nullptr) std::fill_n(out[1], width, 0.0);
  for (int64_t row = 0; row < view.outer; ++row) {
    const double *x = in[0] + row * width, *dy = in[2] + row * width;
    const double rstd = in[1][row];
    double dot = 0;
    for (int64_t k = 0; k < width; ++k) {
      dot += dy[k] * (scale == nullptr ? 1 : scale[k]) * x[k] * rstd;
      if (scale != nullptr) out[1][k] += dy[k] * x[k] * rstd;
    }
    dot /= static_cast<double>(std::max<int64_t>(width, 1));
    for (int64_t k = 0; k < width; ++k) {
      const double dn = dy[k] * (scale == nullptr ? 1 : scale[k]);
      out[0][row * width + k] = rstd * (dn - x[k] * rstd * dot);
    }
  }
}

// The dimensions before `axis`, over which dscale is summed.
Axes FindSharedAxes(const OpCall& call) {
  Axes axes;
  for (int d = 0; d < CallAxis(call); ++d)
    axes.push_back(FactorOf(call, {d, d, d}, {d}, Factor::Over::kSum));
  return axes;
}

}  // namespace

OpDef RmsNormGradDef() {
  return {
      .name = "rms_norm_grad",
      .doc =
          "The gradients in rms_norm, from x, its rstd, dy and scale: with n = x * rstd and dn = "
          "dy "
          "* scale, dx = rstd * (dn - n * mean(dn * n)). With a scale also dscale = sum(dy * n) "
          "over the dimensions before `axis`.",
      .input_names = {"x", "rstd", "dy", "scale?"},
      .output_names = {"dx", "dscale"},
      .attr_defaults = {{"axis", -1}},
      .cost_class = CostClass::kNorm,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .in_place = {{0, 2}},
      .recompute = Recompute::kCheap,
      .shared_axes = FindSharedAxes,
      .reference = Reference,
  };
}

}  // namespace ridge
