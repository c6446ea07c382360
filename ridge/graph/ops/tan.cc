// tan: y = tan(x).
#include <cmath>

#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

double Element(std::span<const double> x, const AttrMap&) { return std::tan(x[0]); }

// dx = dy (1 + y^2).
void Gradient(GradBuilder& g) {
  GraphBuilder& b = g.b();
  const Value slope = b.AddScalar(b.Op("square", {g.output(0)}), 1);
  g.set_input_grad(0, b.Mul(g.output_grad(0), slope));
}

}  // namespace

OpDef TanDef() {
  return {
      .name = "tan",
      .doc = "y = tan(x).",
      .input_names = {"x"},
      .output_names = {"y"},
      .infer_types = InferPointwise<Operands::kFloat>,
      .cost = PointwiseCost<1>,
      .gradient = Gradient,
      .in_place = {{0, 0}},
      .recompute = Recompute::kCheap,
      .onnx = "Tan@7",
      .elementwise = Element,
  };
}

}  // namespace ridge
