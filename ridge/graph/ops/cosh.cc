// cosh: y = cosh(x).
#include <cmath>

#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

double Element(std::span<const double> x, const AttrMap&) { return std::cosh(x[0]); }

// dx = dy sinh(x).
void Gradient(GradBuilder& g) {
  GraphBuilder& b = g.b();
  g.set_input_grad(0, b.Mul(g.output_grad(0), b.Op("sinh", {g.input(0)})));
}

}  // namespace

OpDef CoshDef() {
  return {
      .name = "cosh",
      .doc = "y = cosh(x).",
      .input_names = {"x"},
      .output_names = {"y"},
      .infer_types = InferPointwise<Operands::kFloat>,
      .cost = PointwiseCost<1>,
      .gradient = Gradient,
      .in_place = {{0, 0}},
      .recompute = Recompute::kCheap,
      .onnx = "Cosh@9",
      .elementwise = Element,
  };
}

}  // namespace ridge
