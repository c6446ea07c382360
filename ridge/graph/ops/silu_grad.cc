// silu_grad: dx = dy * silu'(x), with silu'(x) = s (1 + x (1 - s)) and s = sigmoid(x).
//
// One operator and not five, because it is one pass over memory whose arithmetic stays in
// registers.
#include <cmath>

#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

double Element(std::span<const double> v, const AttrMap&) {
  const double s = 1 / (1 + std::exp(-v[1]));
  return v[0] * s * (1 + v[1] * (1 - s));
}

// With ds = s (1 - s): silu''(x) = ds (2 + x (1 - 2 s)).
Value SecondSlope(GraphBuilder& b, Value x) {
  const Value s = b.Op("sigmoid", {x});
  const Value ds = b.Mul(s, b.AddScalar(b.Neg(s), 1));
  return b.Mul(ds, b.AddScalar(b.Mul(x, b.AddScalar(b.MulScalar(s, -2), 1)), 2));
}

void Gradient(GradBuilder& g) {
  GraphBuilder& b = g.b();
  const Value ddx = g.output_grad(0), dy = g.input(0), x = g.input(1);
  if (g.needs_grad(0)) SetBroadcastGrad(g, 0, b.Op("silu_grad", {ddx, x}));
  if (g.needs_grad(1)) SetBroadcastGrad(g, 1, b.Mul(b.Mul(ddx, dy), SecondSlope(b, x)));
}

}  // namespace

OpDef SiluGradDef() {
  return {
      .name = "silu_grad",
      .doc = "dx = dy * silu'(x), the gradient of silu from its input x.",
      .input_names = {"dy", "x"},
      .output_names = {"dx"},
      .infer_types = InferPointwise<Operands::kFloat>,
      .cost = PointwiseCost<8>,
      .gradient = Gradient,
      .in_place = {{0, 0}, {0, 1}},
      .recompute = Recompute::kCheap,
      .elementwise = Element,
  };
}

}  // namespace ridge
