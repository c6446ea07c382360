// sin: y = sin(x), x in radians.
#include <cmath>

#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

double Element(std::span<const double> x, const AttrMap&) { return std::sin(x[0]); }

// dx = dy cos(x).
void Gradient(GradBuilder& g) {
  g.set_input_grad(0, g.b().Mul(g.output_grad(0), g.b().Op("cos", {g.input(0)})));
}

}  // namespace

OpDef SinDef() {
  return {
      .name = "sin",
      .doc = "y = sin(x), x in radians.",
      .input_names = {"x"},
      .output_names = {"y"},
      .infer_types = InferPointwise<Operands::kFloat>,
      .cost = PointwiseCost<1>,
      .gradient = Gradient,
      .in_place = {{0, 0}},
      .recompute = Recompute::kCheap,
      .onnx = "Sin@7",
      .elementwise = Element,
  };
}

}  // namespace ridge
