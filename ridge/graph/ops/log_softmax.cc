// log_softmax: y = x - max(x) - log(sum(exp(x - max(x)))), along one axis.
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

// Per element: max, subtract, exp, add, subtract.
Cost EstimateCost(const OpCall& call) {
  const TensorType& x = call.inputs[0];
  return {.flops = 5 * x.elements(), .bytes_read = x.bytes(), .bytes_written = x.bytes()};
}

// dx = dy - exp(y) * sum(dy).  Reads y only.
void Gradient(GradBuilder& g) {
  const Value y = g.y(), dy = g.dy();
  const Value sum = Sum(dy, {g.integer("axis")}, /*keep_dims=*/true);
  g.dx() = dy - Exp(y) * sum;
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
      for (int64_t k = 0; k < view.extent; ++k) sum += std::exp(x[k * view.inner] - max);
      // max and log(sum) one after the other: their sum would round the small one away.
      const double log_sum = std::log(sum);
      for (int64_t k = 0; k < view.extent; ++k) {
        y[k * view.inner] = x[k * view.inner] - max - log_sum;
      }
    }
  }
}

}  // namespace

OpDef LogSoftmaxDef() {
  return {
      .name = "log_softmax",
      .doc =
          "The logarithm of softmax(x) along `axis`: y = x - max(x) - log(sum(exp(x - max(x)))). "
          "y has the type of x.",
      .input_names = {"x"},
      .output_names = {"y"},
      .attr_defaults = {{"axis", -1}},
      .cost_class = CostClass::kReduce,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .gradient = Gradient,
      .in_place = {{0, 0}},
      .recompute = Recompute::kCheap,
      .onnx = {"LogSoftmax", 1, 13},
      .axes = AxesBesidesAttr,
      .reference = Reference,
  };
}

}  // namespace ridge
