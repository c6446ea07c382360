// pow: y = a^b.
#include <cmath>

#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

double Element(std::span<const double> v, const AttrMap&) { return std::pow(v[0], v[1]); }

// da = dy b a^(b - 1); 0 for b = 0, where the product would be 0 * inf at a = 0.
Value BaseGrad(GradBuilder& g) {
  GraphBuilder& b = g.b();
  const Value base = g.input(0), exponent = g.input(1);
  const Value zero = b.Scalar(b.type(base).dtype, 0);
  const Value power = b.Op("pow", {base, b.AddScalar(exponent, -1)});
  const Value slope = b.Mul(exponent, power);
  return b.Where(b.Op("equal", {exponent, zero}), zero, b.Mul(g.output_grad(0), slope));
}

// db = dy y ln(a); 0 for a = 0 and b >= 0, where the product would be 0 * -inf.  NaN for a < 0.
Value ExponentGrad(GradBuilder& g) {
  GraphBuilder& b = g.b();
  const Value base = g.input(0), exponent = g.input(1);
  const Value zero = b.Scalar(b.type(base).dtype, 0);
  const Value flat =
      b.Op("logical_and", {b.Op("equal", {base, zero}), b.Op("greater_equal", {exponent, zero})});
  const Value slope = b.Mul(g.output(0), b.Log(base));
  return b.Where(flat, zero, b.Mul(g.output_grad(0), slope));
}

void Gradient(GradBuilder& g) {
  if (g.needs_grad(0)) SetBroadcastGrad(g, 0, BaseGrad(g));
  if (g.needs_grad(1)) SetBroadcastGrad(g, 1, ExponentGrad(g));
}

}  // namespace

OpDef PowDef() {
  return {
      .name = "pow",
      .doc = "y = a^b; NaN for a < 0 and fractional b. Inputs broadcast.",
      .input_names = {"a", "b"},
      .output_names = {"y"},
      .infer_types = InferPointwise<Operands::kNumber>,
      .cost = PointwiseCost<1>,
      .gradient = Gradient,
      .in_place = {{0, 0}, {0, 1}},
      .recompute = Recompute::kCheap,
      .onnx = "Pow@15",
      .elementwise = Element,
  };
}

}  // namespace ridge
