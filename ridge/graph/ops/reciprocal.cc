// reciprocal: y = 1 / x.
#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

double Element(std::span<const double> x, const AttrMap&) { return 1 / x[0]; }

// dx = -dy y^2.
void Gradient(GradBuilder& g) {
  GraphBuilder& b = g.b();
  const Value square = b.Op("square", {g.output(0)});
  g.set_input_grad(0, b.Neg(b.Mul(g.output_grad(0), square)));
}

}  // namespace

OpDef ReciprocalDef() {
  return {
      .name = "reciprocal",
      .doc = "y = 1 / x.",
      .input_names = {"x"},
      .output_names = {"y"},
      .infer_types = InferPointwise<Operands::kFloat>,
      .cost = PointwiseCost<1>,
      .gradient = Gradient,
      .in_place = {{0, 0}},
      .recompute = Recompute::kCheap,
      .onnx = "Reciprocal@13",
      .elementwise = Element,
  };
}

}  // namespace ridge
