// reduce_min: y = the smallest x along `axes`; NaN wins.
#include <cmath>
#include <limits>

#include "ridge/graph/ops/shared/reduce.h"

namespace ridge {
namespace {

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Reduce(call, in[0], out[0], kInfinity,
         [](double best, double x) { return x < best || std::isnan(x) ? x : best; });
}

void Gradient(GradBuilder& g) { g.set_input_grad(0, ExtremumGrad(g, /*sign=*/-1)); }

}  // namespace

OpDef ReduceMinDef() {
  return {
      .name = "reduce_min",
      .doc =
          "y = the smallest x along `axes`; NaN if any is. Ties share the gradient equally, as in "
          "PyTorch's amin, or along one axis with ties=\"first\" the first takes it, as in its "
          "min(dim). Axes empty: all of them.",
      .input_names = {"x"},
      .output_names = {"y"},
      .attr_defaults = ExtremumAttrs(),
      .cost_class = CostClass::kReduce,
      .infer_types = InferExtremum,
      .cost = ReduceCost,
      .gradient = Gradient,
      .onnx = {"ReduceMin", 1, 13, 1, 12},
      .reference = Reference,
  };
}

}  // namespace ridge
