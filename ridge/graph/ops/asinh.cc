// asinh: y = arsinh(x).
#include <cmath>

#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

double Element(std::span<const double> x, const AttrMap&) { return std::asinh(x[0]); }

// dx = dy / sqrt(x^2 + 1).
void Gradient(GradBuilder& g) {
  GraphBuilder& b = g.b();
  const Value hypotenuse = b.Sqrt(b.AddScalar(b.Op("square", {g.input(0)}), 1));
  g.set_input_grad(0, b.Div(g.output_grad(0), hypotenuse));
}

}  // namespace

OpDef AsinhDef() {
  return {
      .name = "asinh",
      .doc = "y = arsinh(x).",
      .input_names = {"x"},
      .output_names = {"y"},
      .infer_types = InferPointwise<Operands::kFloat>,
      .cost = PointwiseCost<1>,
      .gradient = Gradient,
      .in_place = {{0, 0}},
      .recompute = Recompute::kCheap,
      .onnx = "Asinh@9",
      .elementwise = Element,
  };
}

}  // namespace ridge
