// tanh: y = tanh(x).
#include <cmath>

#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

double Element(std::span<const double> x, const AttrMap&) { return std::tanh(x[0]); }

// dx = dy (1 - y^2).
void Gradient(GradBuilder& g) {
  GraphBuilder& b = g.b();
  const Value slope = b.AddScalar(b.Neg(b.Op("square", {g.output(0)})), 1);
  g.set_input_grad(0, b.Mul(g.output_grad(0), slope));
}

}  // namespace

OpDef TanhDef() {
  return {
      .name = "tanh",
      .doc = "y = tanh(x).",
      .input_names = {"x"},
      .output_names = {"y"},
      .infer_types = InferPointwise<Operands::kFloat>,
      .cost = PointwiseCost<1>,
      .gradient = Gradient,
      .in_place = {{0, 0}},
      .recompute = Recompute::kCheap,
      .onnx = "Tanh@13",
      .elementwise = Element,
  };
}

}  // namespace ridge
