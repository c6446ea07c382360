// reduce_mean: y = mean of x along `axes`; NaN when there are no elements.
#include <algorithm>

#include "ridge/graph/ops/shared/reduce.h"

namespace ridge {
namespace {

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  Reduce(call, in[0], out[0], 0, [](double sum, double x) { return sum + x; });
  const auto width = static_cast<double>(ReducedWidth(call.inputs[0].dims, call.integers("axes")));
  for (int64_t o = 0; o < call.outputs[0].elements(); ++o) out[0][o] /= width;
}

// dx = dy / width, broadcast back; width 0 has no dx to fill.
void Gradient(GradBuilder& g) {
  const Dims dims = g.b().dims(g.input(0));
  const int64_t width = std::max<int64_t>(ReducedWidth(dims, g.integers("axes")), 1);
  const Value share = g.b().MulScalar(g.output_grad(0), 1 / static_cast<double>(width));
  const Value dx = g.b().Cast(WithKeptDims(g, share), g.b().type(g.input(0)).dtype);
  g.set_input_grad(0, g.b().Expand(dx, dims));
}

}  // namespace

OpDef ReduceMeanDef() {
  return {
      .name = "reduce_mean",
      .doc =
          "y = mean of x along `axes`; NaN for no elements. Axes empty: all of them. y is of "
          "`out_dtype`; empty: that of x.",
      .input_names = {"x"},
      .output_names = {"y"},
      .attr_defaults = SumAttrs(),
      .cost_class = CostClass::kReduce,
      .infer_types = InferReduce<Operands::kFloat, EmptyAxis::kDefined>,
      .cost = ReduceCost,
      .gradient = Gradient,
      .onnx = {"ReduceMean", 1, 13, 1},
      .reference = Reference,
  };
}

}  // namespace ridge
