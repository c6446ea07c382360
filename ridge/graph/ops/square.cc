// square: y = x * x.
#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

double Element(std::span<const double> x, const AttrMap&) { return x[0] * x[0]; }

// dx = 2 dy x.
void Gradient(GradBuilder& g) {
  GraphBuilder& b = g.b();
  g.set_input_grad(0, b.Mul(b.MulScalar(g.output_grad(0), 2), g.input(0)));
}

}  // namespace

OpDef SquareDef() {
  return {
      .name = "square",
      .doc = "y = x * x.",
      .input_names = {"x"},
      .output_names = {"y"},
      .infer_types = InferPointwise<Operands::kNumber>,
      .cost = PointwiseCost<1>,
      .gradient = Gradient,
      .in_place = {{0, 0}},
      .recompute = Recompute::kCheap,
      .elementwise = Element,
  };
}

}  // namespace ridge
