// softplus: y = ln(1 + e^x).
#include <algorithm>
#include <cmath>

#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

// As max(x, 0) + ln(1 + e^-|x|), which cannot overflow.
double Element(std::span<const double> x, const AttrMap&) {
  return std::max(x[0], 0.0) + std::log1p(std::exp(-std::abs(x[0])));
}

// dx = dy sigmoid(x).
void Gradient(GradBuilder& g) {
  GraphBuilder& b = g.b();
  g.set_input_grad(0, b.Mul(g.output_grad(0), b.Op("sigmoid", {g.input(0)})));
}

}  // namespace

OpDef SoftplusDef() {
  return {
      .name = "softplus",
      .doc = "y = ln(1 + e^x).",
      .input_names = {"x"},
      .output_names = {"y"},
      .infer_types = InferPointwise<Operands::kFloat>,
      .cost = PointwiseCost<4>,
      .gradient = Gradient,
      .in_place = {{0, 0}},
      .recompute = Recompute::kCheap,
      .onnx = "Softplus@1",
      .elementwise = Element,
  };
}

}  // namespace ridge
