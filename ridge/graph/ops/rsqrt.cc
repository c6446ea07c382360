// rsqrt: y = 1 / sqrt(x).
#include <cmath>

#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

double Element(std::span<const double> x, const AttrMap&) { return 1 / std::sqrt(x[0]); }

// dx = -dy y^3 / 2.
void Gradient(GradBuilder& g) {
  GraphBuilder& b = g.b();
  const Value y = g.output(0);
  const Value cube = b.Mul(b.Op("square", {y}), y);
  g.set_input_grad(0, b.Mul(b.MulScalar(g.output_grad(0), -0.5), cube));
}

}  // namespace

OpDef RsqrtDef() {
  return {
      .name = "rsqrt",
      .doc = "y = 1 / sqrt(x).",
      .input_names = {"x"},
      .output_names = {"y"},
      .infer_types = InferPointwise<Operands::kFloat>,
      .cost = PointwiseCost<2>,
      .gradient = Gradient,
      .in_place = {{0, 0}},
      .recompute = Recompute::kCheap,
      .elementwise = Element,
  };
}

}  // namespace ridge
