// mod: y = a - floor(a / b) b: the remainder, with the sign of b.
// Python's %; NaN for b = 0, which is 0 for integers.
#include <cmath>

#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

double Element(std::span<const double> v, const AttrMap&) {
  const double rest = std::fmod(v[0], v[1]);
  if (rest == 0) return std::copysign(0.0, v[1]);
  return (rest < 0) == (v[1] < 0) ? rest : rest + v[1];
}

// da = dy, db = -dy floor(a / b).
void Gradient(GradBuilder& g) {
  GraphBuilder& b = g.b();
  const Value dy = g.output_grad(0);
  const Value times = b.Op("floor", {b.Div(g.input(0), g.input(1))});
  if (g.needs_grad(0)) SetBroadcastGrad(g, 0, dy);
  if (g.needs_grad(1)) SetBroadcastGrad(g, 1, b.Neg(b.Mul(dy, times)));
}

}  // namespace

OpDef ModDef() {
  return {
      .name = "mod",
      .doc = "y = a - floor(a / b) b: the remainder, with the sign of b. Inputs broadcast.",
      .input_names = {"a", "b"},
      .output_names = {"y"},
      .infer_types = InferPointwise<Operands::kNumber>,
      .cost = PointwiseCost<2>,
      .gradient = Gradient,
      .in_place = {{0, 0}, {0, 1}},
      .recompute = Recompute::kCheap,
      .onnx = "Mod@13",
      .elementwise = Element,
  };
}

}  // namespace ridge
