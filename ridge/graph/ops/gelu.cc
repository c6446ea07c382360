// gelu: y = x Phi(x), Phi the normal distribution, or its tanh form; and gelu_grad, its slope.
#include "ridge/graph/ops/shared/gelu_formula.h"

namespace ridge {
namespace {

double Element(std::span<const double> x, const AttrMap& attrs) {
  return Gelu(x[0], GeluUsesTanh(attrs));
}

void Gradient(GradBuilder& g) {
  g.set_input_grad(0, g.b().Op("gelu_grad", {g.output_grad(0), g.input(0)}, g.attrs()));
}

double GradElement(std::span<const double> v, const AttrMap& attrs) {
  return v[0] * GeluSlope(v[1], GeluUsesTanh(attrs));
}

// gelu''(x) = phi(x) (2 - x^2), phi the normal density.
Value SecondSlope(GraphBuilder& b, Value x) {
  const Value square = b.Op("square", {x});
  const Value density =
      b.MulScalar(b.Exp(b.MulScalar(square, -0.5)), 1 / std::sqrt(2 * std::numbers::pi));
  return b.Mul(density, b.AddScalar(b.Neg(square), 2));
}

// With t = tanh(u), u = s (x + c x^3): gelu''(x) = (1 - t^2) (u' + x u'' / 2 - x t u'^2).
Value SecondSlopeTanh(GraphBuilder& b, Value x) {
  const Value square = b.Op("square", {x});
  const Value cubic = b.AddScalar(b.MulScalar(square, kGeluCubic), 1);
  const Value t = b.Op("tanh", {b.MulScalar(b.Mul(x, cubic), kGeluScale)});
  const Value du = b.MulScalar(b.AddScalar(b.MulScalar(square, 3 * kGeluCubic), 1), kGeluScale);
  const Value half_x_ddu = b.MulScalar(square, 3 * kGeluScale * kGeluCubic);
  const Value bend = b.Mul(b.Mul(x, t), b.Op("square", {du}));
  const Value falloff = b.AddScalar(b.Neg(b.Op("square", {t})), 1);
  return b.Mul(falloff, b.Sub(b.Add(du, half_x_ddu), bend));
}

void GradGradient(GradBuilder& g) {
  GraphBuilder& b = g.b();
  const Value ddx = g.output_grad(0), dy = g.input(0), x = g.input(1);
  if (g.needs_grad(0)) SetBroadcastGrad(g, 0, b.Op("gelu_grad", {ddx, x}, g.attrs()));
  if (!g.needs_grad(1)) return;
  const Value second = GeluUsesTanh(g.attrs()) ? SecondSlopeTanh(b, x) : SecondSlope(b, x);
  SetBroadcastGrad(g, 1, b.Mul(b.Mul(ddx, dy), second));
}

OpDef GeluDef() {
  return {
      .name = "gelu",
      .doc =
          "y = x Phi(x), Phi the normal distribution; approximate=\"tanh\" takes "
          "x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2.",
      .input_names = {"x"},
      .output_names = {"y"},
      .attr_defaults = {{"approximate", std::string("none")}},
      .infer_types = InferGelu,
      .cost = PointwiseCost<5>,
      .gradient = Gradient,
      .in_place = {{0, 0}},
      .recompute = Recompute::kCheap,
      .onnx = {"Gelu", 20, 20},
      .pattern = MatchGelu,
      .elementwise = Element,
  };
}

OpDef GeluGradDef() {
  return {
      .name = "gelu_grad",
      .doc = "dx = dy * gelu'(x), the gradient of gelu from its input x.",
      .input_names = {"dy", "x"},
      .output_names = {"dx"},
      .attr_defaults = {{"approximate", std::string("none")}},
      .infer_types = InferGelu,
      .cost = PointwiseCost<10>,
      .gradient = GradGradient,
      .in_place = {{0, 0}, {0, 1}},
      .recompute = Recompute::kCheap,
      .elementwise = GradElement,
  };
}

}  // namespace

std::vector<OpDef> GeluOps() { return {GeluDef(), GeluGradDef()}; }

}  // namespace ridge
