// reduce_sum: y = sum of x along `axes`; 0 when there is nothing to sum.
#include "ridge/graph/ops/shared/reduce.h"

namespace ridge {
namespace {

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  Reduce(call, in[0], out[0], 0, [](double sum, double x) { return sum + x; });
}

// dx = dy, broadcast back.
void Gradient(GradBuilder& g) {
  const Dims dims = g.b().dims(g.input(0));
  const Value dx = g.b().Cast(WithKeptDims(g, g.output_grad(0)), g.b().type(g.input(0)).dtype);
  g.set_input_grad(0, g.b().Expand(dx, dims));
}

}  // namespace

OpDef ReduceSumDef() {
  return {
      .name = "reduce_sum",
      .doc =
          "y = sum of x along `axes`; 0 for no elements. 64-bit integers are exact up to 2^53. "
          "Axes empty: all of them. y is of `out_dtype`; empty: that of x.",
      .input_names = {"x"},
      .output_names = {"y"},
      .attr_defaults = SumAttrs(),
      .cost_class = CostClass::kReduce,
      .infer_types = InferReduce<Operands::kNumber, EmptyAxis::kDefined>,
      .cost = ReduceCost,
      .gradient = Gradient,
      .onnx = {"ReduceSum", 1, 13, 1},
      .reference = Reference,
  };
}

}  // namespace ridge
