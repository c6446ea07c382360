// layer_norm: y = scale * (x - mean) * rstd + shift, with mean and rstd over the last dimensions.
//
// Ba, Kiros and Hinton, 2016.  rstd = 1 / sqrt(var + epsilon) is kept instead of var, because that
// is what the gradient reads.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ridge/graph/axes.h"
#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/norm.h"

namespace ridge {
namespace {

// x: float, rank >= 1.  scale, shift: x.dims[axis..).  y: as x, or of out_dtype.
// mean, rstd: x.dims[..axis).
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  const TensorType& x = call.inputs[0];
  RIDGE_RETURN_IF_ERROR(CheckFloat(call, 0, "x"));
  RIDGE_RETURN_IF_ERROR(CheckNumber(call, "epsilon", std::numeric_limits<double>::infinity()));
  RIDGE_ASSIGN_OR_RETURN(const int axis, CheckAxis(call, "x"));
  const DType dtype = StatisticDType(x.dtype);
  const TensorType row{dtype, TrailingDims(x.dims, axis)};
  const char* why = "the dimensions of x from axis on";
  if (call.has_input(1)) RIDGE_RETURN_IF_ERROR(CheckType(call, 1, "scale", row, why));
  if (call.has_input(2)) RIDGE_RETURN_IF_ERROR(CheckType(call, 2, "shift", row, why));
  const TensorType statistic{dtype, LeadingDims(x.dims, axis)};
  RIDGE_ASSIGN_OR_RETURN(const DType out, FloatOutDType(call));
  return std::vector<TensorType>{{out, x.dims}, statistic, statistic};
}

// Per element: add; subtract, square and add; subtract and multiply; scale; shift.  A row stays in
// cache, so x counts once.
Cost EstimateCost(const OpCall& call) {
  const int64_t each = 6 + (call.has_input(1) ? 1 : 0) + (call.has_input(2) ? 1 : 0);
  return StreamingCost(call, each * call.inputs[0].elements());
}

// mean or rstd, or its gradient, with 1 for each normalized dimension and in x's dtype.
Value OverRows(GradBuilder& g, Value v) {
  Dims dims = v.dims();
  dims.resize(g.x().dims().size(), 1);
  return Reshape(Cast(v, g.x().dtype()), dims);
}

// What reaches x through mean and rstd: dmean / N - drstd * rstd^3 * (x - mean) / N.
Value StatisticsGrad(GradBuilder& g, int axis) {
  const Value x = g.x(), mean = g.y(1), rstd = g.y(2);
  const int64_t count = std::max<int64_t>(ElementCount(TrailingDims(x.dims(), axis)), 1);
  const double inverse_count = 1 / static_cast<double>(count);
  const Value dmean = g.dy(1) * inverse_count;
  const Value cube = rstd * rstd * rstd;
  const Value dvar = g.dy(2) * cube * -inverse_count;
  const Value centered = x - OverRows(g, mean);
  const Value by_var = OverRows(g, dvar) * centered;
  return OverRows(g, dmean) + by_var;
}

// dshift = sum(dy) over the rows, for a shift without a scale.
Value ShiftGrad(GradBuilder& g, int axis) {
  const Value dy = Cast(g.dy(), g.x(2).dtype());
  if (axis == 0) return dy;  // one row; no axes would mean all
  std::vector<int64_t> rows(static_cast<size_t>(axis));
  std::iota(rows.begin(), rows.end(), 0);
  return Sum(dy, rows);
}

// dx, dscale, dshift = layer_norm_grad(x, mean, rstd, dy, scale).
void Gradient(GradBuilder& g) {
  const Value x = g.x(), dy = g.dy(), scale = g.x(1);
  const int axis = *NormalizeAxis(g.integer("axis"), x.rank(), "layer_norm");
  if (g.needs_dx(0) || g.needs_dx(1)) {
    const std::vector<Value> grads =
        OpOutputs("layer_norm_grad", {x, g.y(1), g.y(2), dy, scale}, {{"axis", axis}});
    const bool statistics = g.needs_dx(0) && (g.has_dy(1) || g.has_dy(2));
    g.dx() = statistics ? grads[0] + StatisticsGrad(g, axis) : grads[0];
    if (g.needs_dx(1)) {
      g.dx(1) = grads[1];
      g.dx(2) = grads[2];
      return;
    }
  }
  if (g.needs_dx(2)) g.dx(2) = ShiftGrad(g, axis);
}

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const AxisView view = ViewTrailing(call.inputs[0].dims, CallAxis(call));
  const double* scale = call.has_input(1) ? in[1] : nullptr;
  const double* shift = call.has_input(2) ? in[2] : nullptr;
  const AxisView one_row{.outer = 1, .extent = 1, .inner = view.extent};
  for (int64_t row = 0; row < view.outer; ++row) {
    const double* x = in[0] + row * view.extent;
    double* y = out[0] + row * view.extent;
    const Moments moments = ChannelMoments(x, one_row, 0);
    const double rstd = 1 / std::sqrt(moments.variance + call.number("epsilon"));
    out[1][row] = moments.mean;
    out[2][row] = rstd;
    for (int64_t k = 0; k < view.extent; ++k) {
      const double n = (x[k] - moments.mean) * rstd;
      y[k] = n * (scale == nullptr ? 1 : scale[k]) + (shift == nullptr ? 0 : shift[k]);
    }
  }
}

}  // namespace

OpDef LayerNormDef() {
  return {
      .name = "layer_norm",
      .doc =
          "Normalizes x by mean and biased variance over the dimensions from `axis` on: y = "
          "scale * (x - mean) * rstd + shift, rstd = 1 / sqrt(var + epsilon). scale and shift "
          "have the dimensions of x from `axis` on, mean and rstd those before it; all four are "
          "f32 (f64 for f64). y is of `out_dtype`; empty: that of x.",
      .input_names = {"x", "scale?", "shift?"},
      .output_names = {"y", "mean", "rstd"},
      .attr_defaults = {{"axis", -1}, {"epsilon", 1e-5}, {"out_dtype", ""}},
      .cost_class = CostClass::kNorm,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .gradient = Gradient,
      .in_place = {{0, 0}},
      .recompute = Recompute::kCheap,
      .onnx = {"LayerNormalization", 17, 17},
      .pattern = MatchNorm,
      .axes = AxesBeforeAttr,
      .reference = Reference,
  };
}

}  // namespace ridge
