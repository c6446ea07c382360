// sigmoid: y = 1 / (1 + e^-x).
#include <cmath>

#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

double Element(std::span<const double> x, const AttrMap&) { return 1 / (1 + std::exp(-x[0])); }

// dx = dy y (1 - y).
void Gradient(GradBuilder& g) {
  GraphBuilder& b = g.b();
  const Value y = g.output(0);
  const Value slope = b.Mul(y, b.AddScalar(b.Neg(y), 1));
  g.set_input_grad(0, b.Mul(g.output_grad(0), slope));
}

}  // namespace

OpDef SigmoidDef() {
  return {
      .name = "sigmoid",
      .doc = "y = 1 / (1 + e^-x).",
      .input_names = {"x"},
      .output_names = {"y"},
      .infer_types = InferPointwise<Operands::kFloat>,
      .cost = PointwiseCost<4>,
      .gradient = Gradient,
      .in_place = {{0, 0}},
      .recompute = Recompute::kCheap,
      .onnx = "Sigmoid@13",
      .elementwise = Element,
  };
}

}  // namespace ridge
