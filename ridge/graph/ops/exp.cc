// exp: y = e^x.
#include <cmath>

#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

double Element(std::span<const double> x, const AttrMap&) { return std::exp(x[0]); }

// dx = dy * y.
void Gradient(GradBuilder& g) { g.set_input_grad(0, g.b().Mul(g.output_grad(0), g.output(0))); }

}  // namespace

OpDef ExpDef() {
  return {
      .name = "exp",
      .doc = "y = e^x.",
      .input_names = {"x"},
      .output_names = {"y"},
      .infer_types = InferPointwise<Operands::kFloat>,
      .cost = PointwiseCost<1>,
      .gradient = Gradient,
      .in_place = {{0, 0}},
      .recompute = Recompute::kCheap,
      .onnx = "Exp@13",
      .elementwise = Element,
  };
}

}  // namespace ridge
