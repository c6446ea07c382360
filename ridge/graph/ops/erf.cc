// erf: y = 2 / sqrt(pi) * integral of e^(-t^2) for t from 0 to x.
#include <cmath>
#include <numbers>

#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

double Element(std::span<const double> x, const AttrMap&) { return std::erf(x[0]); }

// dx = dy * 2 / sqrt(pi) * e^(-x^2).
void Gradient(GradBuilder& g) {
  GraphBuilder& b = g.b();
  const Value bell = b.Exp(b.Neg(b.Op("square", {g.input(0)})));
  const double scale = 2 / std::sqrt(std::numbers::pi);
  g.set_input_grad(0, b.Mul(b.MulScalar(g.output_grad(0), scale), bell));
}

}  // namespace

OpDef ErfDef() {
  return {
      .name = "erf",
      .doc = "y = 2 / sqrt(pi) * integral of e^(-t^2) for t from 0 to x.",
      .input_names = {"x"},
      .output_names = {"y"},
      .infer_types = InferPointwise<Operands::kFloat>,
      .cost = PointwiseCost<1>,
      .gradient = Gradient,
      .in_place = {{0, 0}},
      .recompute = Recompute::kCheap,
      .onnx = "Erf@13",
      .elementwise = Element,
  };
}

}  // namespace ridge
