// mish: y = x tanh(ln(1 + e^x)).
#include <cmath>

#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

// tanh(ln(1 + z)) = n / (n + 2) with n = z (z + 2); beyond 20 it is 1.
double Element(std::span<const double> x, const AttrMap&) {
  if (x[0] > 20) return x[0];
  const double z = std::exp(x[0]), n = z * (z + 2);
  return x[0] * (n / (n + 2));
}

// dx = dy (t + x sigmoid(x) (1 - t^2)) with t = tanh(softplus(x)).
void Gradient(GradBuilder& g) {
  GraphBuilder& b = g.b();
  const Value x = g.input(0);
  const Value t = b.Op("tanh", {b.Op("softplus", {x})});
  const Value falloff = b.AddScalar(b.Neg(b.Op("square", {t})), 1);
  const Value bend = b.Mul(b.Mul(x, b.Op("sigmoid", {x})), falloff);
  g.set_input_grad(0, b.Mul(g.output_grad(0), b.Add(t, bend)));
}

}  // namespace

OpDef MishDef() {
  return {
      .name = "mish",
      .doc = "y = x tanh(ln(1 + e^x)).",
      .input_names = {"x"},
      .output_names = {"y"},
      .infer_types = InferPointwise<Operands::kFloat>,
      .cost = PointwiseCost<6>,
      .gradient = Gradient,
      .in_place = {{0, 0}},
      .recompute = Recompute::kCheap,
      .onnx = "Mish@18",
      .elementwise = Element,
  };
}

}  // namespace ridge
