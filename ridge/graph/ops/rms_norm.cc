// rms_norm: y = scale * x * rstd, with rstd = 1 / sqrt(mean(x^2) + epsilon) over the last
// dimensions.
//
// Zhang and Sennrich, 2019.  rstd is kept for the gradient; x * rstd is recomputed.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ridge/graph/axes.h"
#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/norm.h"

namespace ridge {
namespace {

// x: float, rank >= 1.  scale: x.dims[axis..).  y: as x.  rstd: x.dims[..axis).
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  const TensorType& x = call.inputs[0];
  RIDGE_RETURN_IF_ERROR(CheckFloat(call, 0, "x"));
  RIDGE_RETURN_IF_ERROR(CheckNumber(call, "epsilon", std::numeric_limits<double>::infinity()));
  RIDGE_ASSIGN_OR_RETURN(const int axis, CheckAxis(call, "x"));
  const DType dtype = StatisticDType(x.dtype);
  const TensorType row{dtype, TrailingDims(x.dims, axis)};
  if (call.has_input(1))
    RIDGE_RETURN_IF_ERROR(CheckType(call, 1, "scale", row, "the dimensions of x from axis on"));
  return std::vector<TensorType>{x, {dtype, LeadingDims(x.dims, axis)}};
}

// Per element: square and add; multiply; scale.  A row stays in cache, so x counts once.
Cost EstimateCost(const OpCall& call) {
  return StreamingCost(call, (call.has_input(1) ? 4 : 3) * call.inputs[0].elements());
}

// What reaches x through rstd: -drstd * rstd^3 * x / N.
Value StatisticGrad(GradBuilder& g, int axis) {
  const Value x = g.x(), rstd = g.y(1);
  const int64_t count = std::max<int64_t>(ElementCount(TrailingDims(x.dims(), axis)), 1);
  const Value cube = rstd * rstd * rstd;
  const Value rows = g.dy(1) * cube * (-1 / static_cast<double>(count));
  Dims dims = rows.dims();
  dims.resize(x.dims().size(), 1);
  return Reshape(Cast(rows, x.dtype()), dims) * x;
}

// dx, dscale = rms_norm_grad(x, rstd, dy, scale).
void Gradient(GradBuilder& g) {
  GraphBuilder& b = g.b();
  const Value x = g.x();
  const int axis = *NormalizeAxis(g.integer("axis"), x.rank(), "rms_norm");
  const std::vector<Value> grads =
      OpOutputs("rms_norm_grad", {x, g.y(1), g.dy(), g.x(1)}, {{"axis", axis}});
  if (!b.ok()) return;
  const bool statistic = g.needs_dx(0) && g.has_dy(1);
  g.dx() = statistic ? grads[0] + StatisticGrad(g, axis) : grads[0];
  if (g.needs_dx(1)) g.dx(1) = grads[1];
}

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const AxisView view = ViewTrailing(call.inputs[0].dims, CallAxis(call));
  const double* scale = call.has_input(1) ? in[1] : nullptr;
  for (int64_t row = 0; row < view.outer; ++row) {
    const double* x = in[0] + row * view.extent;
    double* y = out[0] + row * view.extent;
    double sum = 0;
    for (int64_t k = 0; k < view.extent; ++k) sum += x[k] * x[k];
    const auto count = static_cast<double>(std::max<int64_t>(view.extent, 1));
    const double rstd = 1 / std::sqrt(sum / count + call.number("epsilon"));
    out[1][row] = rstd;
    for (int64_t k = 0; k < view.extent; ++k)
      y[k] = x[k] * rstd * (scale == nullptr ? 1 : scale[k]);
  }
}

}  // namespace

OpDef RmsNormDef() {
  return {
      .name = "rms_norm",
      .doc =
          "Divides x by the root of its mean square over the dimensions from `axis` on: y = scale "
          "* "
          "x * rstd, rstd = 1 / sqrt(mean(x^2) + epsilon). scale has the dimensions of x from "
          "`axis` on, rstd those before it; both are f32 (f64 for f64).",
      .input_names = {"x", "scale?"},
      .output_names = {"y", "rstd"},
      .attr_defaults = {{"axis", -1}, {"epsilon", 1e-5}},
      .cost_class = CostClass::kNorm,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .gradient = Gradient,
      .in_place = {{0, 0}},
      .recompute = Recompute::kCheap,
      .onnx = {"RMSNormalization", 23, 23},
      .axes = AxesBeforeAttr,
      .reference = Reference,
  };
}

}  // namespace ridge
