// div: y = a / b.
// Integers: toward zero; x / 0 saturates and 0 / 0 is 0.
#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

double Element(std::span<const double> v, const AttrMap&) { return v[0] / v[1]; }

// da = dy / b, db = -dy / b * y.
void Gradient(GradBuilder& g) {
  GraphBuilder& b = g.b();
  const Value da = b.Div(g.output_grad(0), g.input(1));
  if (g.needs_grad(0)) SetBroadcastGrad(g, 0, da);
  if (g.needs_grad(1)) SetBroadcastGrad(g, 1, b.Neg(b.Mul(da, g.output(0))));
}

}  // namespace

OpDef DivDef() {
  return {
      .name = "div",
      .doc =
          "y = a / b. Inputs broadcast. Integers divide toward zero; x / 0 saturates, 0 / 0 is 0.",
      .input_names = {"a", "b"},
      .output_names = {"y"},
      .infer_types = InferPointwise<Operands::kNumber>,
      .cost = PointwiseCost<1>,
      .gradient = Gradient,
      .in_place = {{0, 0}, {0, 1}},
      .recompute = Recompute::kCheap,
      .onnx = "Div@14",
      .elementwise = Element,
  };
}

}  // namespace ridge
