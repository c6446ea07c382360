// abs: y = |x|.
#include <cmath>

#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

double Element(std::span<const double> x, const AttrMap&) { return std::abs(x[0]); }

// dx = dy * sign(x), so 0 at 0.
void Gradient(GradBuilder& g) {
  g.set_input_grad(0, g.b().Mul(g.output_grad(0), g.b().Op("sign", {g.input(0)})));
}

}  // namespace

OpDef AbsDef() {
  return {
      .name = "abs",
      .doc = "y = |x|.",
      .input_names = {"x"},
      .output_names = {"y"},
      .infer_types = InferPointwise<Operands::kSigned>,
      .cost = PointwiseCost<1>,
      .gradient = Gradient,
      .in_place = {{0, 0}},
      .recompute = Recompute::kCheap,
      .onnx = "Abs@13",
      .elementwise = Element,
  };
}

}  // namespace ridge
