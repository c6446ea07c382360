// sub: y = a - b.
#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

double Element(std::span<const double> v, const AttrMap&) { return v[0] - v[1]; }

// da = dy, db = -dy.
void Gradient(GradBuilder& g) {
  if (g.needs_grad(0)) SetBroadcastGrad(g, 0, g.output_grad(0));
  if (g.needs_grad(1)) SetBroadcastGrad(g, 1, g.b().Neg(g.output_grad(0)));
}

}  // namespace

OpDef SubDef() {
  return {
      .name = "sub",
      .doc = "y = a - b. Inputs broadcast.",
      .input_names = {"a", "b"},
      .output_names = {"y"},
      .infer_types = InferPointwise<Operands::kNumber>,
      .cost = PointwiseCost<1>,
      .gradient = Gradient,
      .in_place = {{0, 0}, {0, 1}},
      .recompute = Recompute::kCheap,
      .onnx = "Sub@14",
      .elementwise = Element,
  };
}

}  // namespace ridge
