// softmax: y = exp(x - max(x)) / sum(exp(x - max(x))), along one axis.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ridge/graph/axes.h"
#include "ridge/graph/grad_builder.h"
#include "ridge/graph/ops/shared/axis_view.h"
#include "ridge/graph/ops/shared/checks.h"

namespace ridge {
namespace {

// x: float, rank >= 1.  y: the type of x.
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  RIDGE_RETURN_IF_ERROR(CheckFloat(call, 0, "x"));
  if (const Result<int> axis = CheckAxis(call, "x"); !axis.ok()) return axis.status();
  return std::vector<TensorType>{call.inputs[0]};
}

// Per element: max, subtract, exp, add, divide.  x is read once, y written once.
Cost EstimateCost(const OpCall& call) {
  const TensorType& x = call.inputs[0];
  return {.flops = 5 * x.elements(), .bytes_read = x.bytes(), .bytes_written = x.bytes()};
}

// dx = y * (dy - sum(dy * y)).  Reads y only, so x need not be kept.
void Gradient(GradBuilder& g) {
  const Value y = g.y(), dy = g.dy();
  const Value dot = Sum(dy * y, {g.integer("axis")}, /*keep_dims=*/true);
  g.dx() = y * (dy - dot);
}

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const AxisView view = ViewAxis(call.inputs[0].dims, CallAxis(call));
  for (int64_t o = 0; o < view.outer; ++o) {
    for (int64_t i = 0; i < view.inner; ++i) {
      const double* x = in[0] + view.Index(o, 0, i);  // x[o, :, i], stride `inner`
      double* y = out[0] + view.Index(o, 0, i);
      double max = -std::numeric_limits<double>::infinity();  // so that exp cannot overflow
      for (int64_t k = 0; k < view.extent; ++k) max = std::max(max, x[k * view.inner]);
      double sum = 0;
      for (int64_t k = 0; k < view.extent; ++k) {
        sum += y[k * view.inner] = std::exp(x[k * view.inner] - max);
      }
      for (int64_t k = 0; k < view.extent; ++k) y[k * view.inner] /= sum;
    }
  }
}

}  // namespace

OpDef SoftmaxDef() {
  return {
      .name = "softmax",
      .doc =
          "Normalizes x to positive values that sum to 1 along `axis`: y = exp(x - max(x)) / "
          "sum(exp(x - max(x))). y has the type of x.",
      .input_names = {"x"},
      .output_names = {"y"},
      .attr_defaults = {{"axis", -1}},
      .cost_class = CostClass::kReduce,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .gradient = Gradient,
      .in_place = {{0, 0}},
      .recompute = Recompute::kCheap,
      .onnx = {"Softmax", 1, 13},
      .axes = AxesBesidesAttr,
      .reference = Reference,
  };
}

}  // namespace ridge
