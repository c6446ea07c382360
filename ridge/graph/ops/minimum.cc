// minimum: y = the smaller of a and b.
// NaN wins, as in numpy.  Equal elements share the gradient half and half, as in PyTorch.
#include <cmath>

#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

double Element(std::span<const double> v, const AttrMap&) {
  if (std::isnan(v[0])) return v[0];
  return v[0] < v[1] ? v[0] : v[1];
}

// dy where `mine` is below `other`, half of it where they are equal.
Value Share(GradBuilder& g, Value mine, Value other) {
  GraphBuilder& b = g.b();
  const Value dy = g.output_grad(0), zero = b.Scalar(b.type(dy).dtype, 0);
  const Value tie = b.Op("equal", {mine, other}), wins = b.Op("less", {mine, other});
  return b.Where(tie, b.MulScalar(dy, 0.5), b.Where(wins, dy, zero));
}

void Gradient(GradBuilder& g) {
  const Value a = g.input(0), b = g.input(1);
  if (g.needs_grad(0)) SetBroadcastGrad(g, 0, Share(g, a, b));
  if (g.needs_grad(1)) SetBroadcastGrad(g, 1, Share(g, b, a));
}

}  // namespace

OpDef MinimumDef() {
  return {
      .name = "minimum",
      .doc =
          "y = the smaller of a and b; NaN if either is. Inputs broadcast. Ties share the gradient "
          "half and half.",
      .input_names = {"a", "b"},
      .output_names = {"y"},
      .infer_types = InferPointwise<Operands::kNumber>,
      .cost = PointwiseCost<1>,
      .gradient = Gradient,
      .in_place = {{0, 0}, {0, 1}},
      .recompute = Recompute::kCheap,
      .onnx = "Min@13",
      .elementwise = Element,
  };
}

}  // namespace ridge
