// gelu: y = x Phi(x), Phi the normal distribution, or its tanh form; and gelu_grad, its slope.
#include "ridge/graph/ops/shared/gelu_formula.h"

namespace ridge {
namespace {

double Element(std::span<const double> x, const AttrMap& attrs) {
  return Gelu(x[0], GeluUsesTanh(attrs));
}

void Gradient(GradBuilder& g) { g.dx() = Op("gelu_grad", {g.dy(), g.x()}, g.attrs()); }

double GradElement(std::span<const double> v, const AttrMap& attrs) {
  return v[0] * GeluSlope(v[1], GeluUsesTanh(attrs));
}

// gelu''(x) = phi(x) (2 - x^2), phi the normal density.
Value SecondSlope(Value x) {
  const Value square = Square(x);
  const Value density = Exp(square * -0.5) * (1 / std::sqrt(2 * std::numbers::pi));
  return density * (-square + 2);
}

// With t = tanh(u), u = s (x + c x^3): gelu''(x) = (1 - t^2) (u' + x u'' / 2 - x t u'^2).
Value SecondSlopeTanh(Value x) {
  const Value square = Square(x);
  const Value cubic = square * kGeluCubic + 1;
  const Value t = Tanh(x * cubic * kGeluScale);
  const Value du = (square * (3 * kGeluCubic) + 1) * kGeluScale;
  const Value half_x_ddu = square * (3 * kGeluScale * kGeluCubic);
  const Value du_square = Square(du);
  const Value bend = x * t * du_square;
  const Value falloff = -Square(t) + 1;
  return falloff * (du + half_x_ddu - bend);
}

void GradGradient(GradBuilder& g) {
  const Value ddx = g.dy(), dy = g.x(), x = g.x(1);
  if (g.needs_dx(0)) g.dx() = Op("gelu_grad", {ddx, x}, g.attrs());
  if (!g.needs_dx(1)) return;
  const Value second = GeluUsesTanh(g.attrs()) ? SecondSlopeTanh(x) : SecondSlope(x);
  g.dx(1) = ddx * dy * second;
}

OpDef GeluDef() {
  return {
      .name = "gelu",
      .doc =
          "y = x Phi(x), Phi the normal distribution; approximate=\"tanh\" takes "
          "x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2.",
      .input_names = {"x"},
      .output_names = {"y"},
      .attr_defaults = {{"approximate", "none"}},
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
      .attr_defaults = {{"approximate", "none"}},
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
