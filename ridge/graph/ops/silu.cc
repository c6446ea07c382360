// silu: y = x * sigmoid(x).
#include <cmath>

#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

double Element(std::span<const double> x, const AttrMap&) { return x[0] / (1 + std::exp(-x[0])); }

// dx = dy s (1 + x (1 - s)) with s = sigmoid(x).
void Gradient(GradBuilder& g) {
  g.set_input_grad(0, g.b().Op("silu_grad", {g.output_grad(0), g.input(0)}));
}

}  // namespace

OpDef SiluDef() {
  return {
      .name = "silu",
      .doc = "y = x * sigmoid(x).",
      .input_names = {"x"},
      .output_names = {"y"},
      .infer_types = InferPointwise<Operands::kFloat>,
      .cost = PointwiseCost<4>,
      .gradient = Gradient,
      .in_place = {{0, 0}},
      .recompute = Recompute::kCheap,
      .elementwise = Element,
  };
}

}  // namespace ridge
