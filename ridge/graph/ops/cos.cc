// cos: y = cos(x), x in radians.
#include <cmath>

#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

double Element(std::span<const double> x, const AttrMap&) { return std::cos(x[0]); }

// dx = -dy sin(x).
void Gradient(GradBuilder& g) {
  GraphBuilder& b = g.b();
  const Value sine = b.Op("sin", {g.input(0)});
  g.set_input_grad(0, b.Neg(b.Mul(g.output_grad(0), sine)));
}

}  // namespace

OpDef CosDef() {
  return {
      .name = "cos",
      .doc = "y = cos(x), x in radians.",
      .input_names = {"x"},
      .output_names = {"y"},
      .infer_types = InferPointwise<Operands::kFloat>,
      .cost = PointwiseCost<1>,
      .gradient = Gradient,
      .in_place = {{0, 0}},
      .recompute = Recompute::kCheap,
      .onnx = "Cos@7",
      .elementwise = Element,
  };
}

}  // namespace ridge
