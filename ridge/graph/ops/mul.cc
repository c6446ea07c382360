// mul: y = a * b.
#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

double Element(std::span<const double> v, const AttrMap&) { return v[0] * v[1]; }

// da = dy * b, db = dy * a.
void Gradient(GradBuilder& g) {
  const Value dy = g.output_grad(0);
  if (g.needs_grad(0)) SetBroadcastGrad(g, 0, g.b().Mul(dy, g.input(1)));
  if (g.needs_grad(1)) SetBroadcastGrad(g, 1, g.b().Mul(dy, g.input(0)));
}

}  // namespace

OpDef MulDef() {
  return {
      .name = "mul",
      .doc = "y = a * b. Inputs broadcast.",
      .input_names = {"a", "b"},
      .output_names = {"y"},
      .infer_types = InferPointwise<Operands::kNumber>,
      .cost = PointwiseCost<1>,
      .gradient = Gradient,
      .in_place = {{0, 0}, {0, 1}},
      .recompute = Recompute::kCheap,
      .onnx = "Mul@14",
      .elementwise = Element,
  };
}

}  // namespace ridge
