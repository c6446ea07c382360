// neg: y = -x.
#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

double Element(std::span<const double> x, const AttrMap&) { return -x[0]; }

// dx = -dy.
void Gradient(GradBuilder& g) { g.set_input_grad(0, g.b().Neg(g.output_grad(0))); }

}  // namespace

OpDef NegDef() {
  return {
      .name = "neg",
      .doc = "y = -x.",
      .input_names = {"x"},
      .output_names = {"y"},
      .infer_types = InferPointwise<Operands::kSigned>,
      .cost = PointwiseCost<1>,
      .gradient = Gradient,
      .in_place = {{0, 0}},
      .recompute = Recompute::kCheap,
      .onnx = "Neg@13",
      .elementwise = Element,
  };
}

}  // namespace ridge
