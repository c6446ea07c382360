// atanh: y = artanh(x); NaN outside [-1, 1].
#include <cmath>

#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

double Element(std::span<const double> x, const AttrMap&) { return std::atanh(x[0]); }

// dx = dy / ((1 - x) (1 + x)).
void Gradient(GradBuilder& g) {
  GraphBuilder& b = g.b();
  const Value x = g.input(0);
  const Value rest = b.Mul(b.AddScalar(b.Neg(x), 1), b.AddScalar(x, 1));
  g.set_input_grad(0, b.Div(g.output_grad(0), rest));
}

}  // namespace

OpDef AtanhDef() {
  return {
      .name = "atanh",
      .doc = "y = artanh(x); NaN outside [-1, 1].",
      .input_names = {"x"},
      .output_names = {"y"},
      .infer_types = InferPointwise<Operands::kFloat>,
      .cost = PointwiseCost<1>,
      .gradient = Gradient,
      .in_place = {{0, 0}},
      .recompute = Recompute::kCheap,
      .onnx = "Atanh@9",
      .elementwise = Element,
  };
}

}  // namespace ridge
