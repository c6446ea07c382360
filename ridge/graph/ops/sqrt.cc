// sqrt: y = sqrt(x); NaN for x < 0.
#include <cmath>

#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

double Element(std::span<const double> x, const AttrMap&) { return std::sqrt(x[0]); }

// dx = dy / (2 y).
void Gradient(GradBuilder& g) {
  g.set_input_grad(0, g.b().Div(g.b().MulScalar(g.output_grad(0), 0.5), g.output(0)));
}

}  // namespace

OpDef SqrtDef() {
  return {
      .name = "sqrt",
      .doc = "y = sqrt(x); NaN for x < 0.",
      .input_names = {"x"},
      .output_names = {"y"},
      .infer_types = InferPointwise<Operands::kFloat>,
      .cost = PointwiseCost<1>,
      .gradient = Gradient,
      .in_place = {{0, 0}},
      .recompute = Recompute::kCheap,
      .onnx = "Sqrt@13",
      .elementwise = Element,
  };
}

}  // namespace ridge
