// fmod: y = a - trunc(a / b) b: the remainder, with the sign of a.
// C's fmod: exact; NaN for b = 0, which is 0 for integers.
#include <cmath>

#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

double Element(std::span<const double> v, const AttrMap&) { return std::fmod(v[0], v[1]); }

// da = dy, db = -dy trunc(a / b).
void Gradient(GradBuilder& g) {
  GraphBuilder& b = g.b();
  const Value dy = g.output_grad(0);
  const Value times = b.Op("trunc", {b.Div(g.input(0), g.input(1))});
  if (g.needs_grad(0)) SetBroadcastGrad(g, 0, dy);
  if (g.needs_grad(1)) SetBroadcastGrad(g, 1, b.Neg(b.Mul(dy, times)));
}

}  // namespace

OpDef FmodDef() {
  return {
      .name = "fmod",
      .doc = "y = a - trunc(a / b) b: the remainder, with the sign of a. Inputs broadcast.",
      .input_names = {"a", "b"},
      .output_names = {"y"},
      .infer_types = InferPointwise<Operands::kNumber>,
      .cost = PointwiseCost<1>,
      .gradient = Gradient,
      .in_place = {{0, 0}, {0, 1}},
      .recompute = Recompute::kCheap,
      .onnx = "Mod@13",
      .elementwise = Element,
  };
}

}  // namespace ridge
