// hard_swish: y = x times x / 6 + 1 / 2 limited to [0, 1].
#include <cmath>

#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

double Element(std::span<const double> x, const AttrMap&) {
  const double gate = x[0] / 6 + 0.5;
  return x[0] * (gate < 0 ? 0 : gate > 1 ? 1 : gate);
}

// dx = 0 for x <= -3, dy for x >= 3, else dy (x / 3 + 1 / 2).
void Gradient(GradBuilder& g) {
  GraphBuilder& b = g.b();
  const Value x = g.input(0), dy = g.output_grad(0);
  const DType dtype = b.type(dy).dtype;
  const Value bend = b.Mul(dy, b.AddScalar(b.MulScalar(x, 1.0 / 3), 0.5));
  const Value flat = b.Op("less_equal", {x, b.Scalar(dtype, -3)});
  const Value straight = b.Op("greater_equal", {x, b.Scalar(dtype, 3)});
  g.set_input_grad(0, b.Where(flat, b.Scalar(dtype, 0), b.Where(straight, dy, bend)));
}

}  // namespace

OpDef HardSwishDef() {
  return {
      .name = "hard_swish",
      .doc = "y = x times x / 6 + 1 / 2 limited to [0, 1].",
      .input_names = {"x"},
      .output_names = {"y"},
      .infer_types = InferPointwise<Operands::kFloat>,
      .cost = PointwiseCost<5>,
      .gradient = Gradient,
      .in_place = {{0, 0}},
      .recompute = Recompute::kCheap,
      .onnx = "HardSwish@14",
      .elementwise = Element,
  };
}

}  // namespace ridge
