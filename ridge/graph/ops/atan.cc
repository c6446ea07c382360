// atan: y = arctan(x).
#include <cmath>

#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

double Element(std::span<const double> x, const AttrMap&) { return std::atan(x[0]); }

// dx = dy / (1 + x^2).
void Gradient(GradBuilder& g) {
  GraphBuilder& b = g.b();
  const Value slope = b.AddScalar(b.Op("square", {g.input(0)}), 1);
  g.set_input_grad(0, b.Div(g.output_grad(0), slope));
}

}  // namespace

OpDef AtanDef() {
  return {
      .name = "atan",
      .doc = "y = arctan(x).",
      .input_names = {"x"},
      .output_names = {"y"},
      .infer_types = InferPointwise<Operands::kFloat>,
      .cost = PointwiseCost<1>,
      .gradient = Gradient,
      .in_place = {{0, 0}},
      .recompute = Recompute::kCheap,
      .onnx = "Atan@7",
      .elementwise = Element,
  };
}

}  // namespace ridge
