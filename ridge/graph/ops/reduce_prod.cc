// reduce_prod: y = product of x along `axes`; 1 when there is nothing to multiply.
#include "ridge/graph/ops/shared/reduce.h"

namespace ridge {
namespace {

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  Reduce(call, in[0], out[0], 1, [](double product, double x) { return product * x; });
}

// dx = dy * (product of the others).  With p the product of the elements that are not 0:
//   no zero:   p / x
//   one zero:  p at the zero, 0 elsewhere
//   more:      0
void Gradient(GradBuilder& g) {
  GraphBuilder& b = g.b();
  const Value x = g.input(0);
  const DType dtype = b.type(x).dtype;
  const Value zero = b.Scalar(dtype, 0), one = b.Scalar(dtype, 1);
  const Value is_zero = b.Op("equal", {x, zero});
  const Value zeros = b.ReduceSum(b.Cast(is_zero, dtype), g.integers("axes"), /*keep_dims=*/true);
  const Value safe = b.Where(is_zero, one, x);
  const Value product =
      b.Op("reduce_prod", {safe}, {{"axes", g.integers("axes")}, {"keep_dims", int64_t{1}}});
  const Value at_zero = b.Where(b.Op("equal", {zeros, one}), product, zero);
  const Value elsewhere = b.Where(b.Op("equal", {zeros, zero}), b.Div(product, safe), zero);
  const Value others = b.Where(is_zero, at_zero, elsewhere);
  g.set_input_grad(0, b.Mul(WithKeptDims(g, g.output_grad(0)), others));
}

}  // namespace

OpDef ReduceProdDef() {
  return {
      .name = "reduce_prod",
      .doc =
          "y = product of x along `axes`; 1 for no elements. The gradient is right at zeros too. "
          "Axes empty: all of them.",
      .input_names = {"x"},
      .output_names = {"y"},
      .attr_defaults = ReduceAttrs(),
      .cost_class = CostClass::kReduce,
      .infer_types = InferReduce<Operands::kNumber, EmptyAxis::kDefined>,
      .cost = ReduceCost,
      .gradient = Gradient,
      .onnx = {"ReduceProd", 1, 13, 1},
      .reference = Reference,
  };
}

}  // namespace ridge
