// relu: y = max(x, 0).  NaN stays NaN.
#include <cmath>

#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

double Element(std::span<const double> x, const AttrMap&) {
  return x[0] > 0 || std::isnan(x[0]) ? x[0] : 0;
}

// Reads y, not x: relu may run in place and x need not be kept.
void Gradient(GradBuilder& g) {
  g.set_input_grad(0, g.b().Op("relu_grad", {g.output_grad(0), g.output(0)}));
}

}  // namespace

OpDef ReluDef() {
  return {
      .name = "relu",
      .doc = "y = max(x, 0).  NaN stays NaN.",
      .input_names = {"x"},
      .output_names = {"y"},
      .infer_types = InferPointwise<Operands::kNumber>,
      .cost = PointwiseCost<1>,
      .gradient = Gradient,
      .in_place = {{0, 0}},
      .recompute = Recompute::kCheap,
      .onnx = "Relu@14",
      .elementwise = Element,
  };
}

}  // namespace ridge
