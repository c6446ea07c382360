// Activations.  One that reads its output and not its input for the gradient may run in place, and
// its input need not be kept.
//
// relu_grad and silu_grad are operators of their own because they are one pass over memory whose
// arithmetic stays in registers.
#include <algorithm>
#include <cmath>

#include "ridge/graph/ops/shared/pointwise_row.h"
#include "ridge/graph/pattern.h"

namespace ridge {
namespace {

using enum Operands;

double Number(const AttrMap& attrs, const char* name) { return attrs.number(name); }

// Linear in dy; y only switches.
void ReluGradGradient(GradBuilder& g) { g.dx() = Op("relu_grad", {g.dy(), g.x(1)}); }

// dx = dy for x > 0, else alpha * dy.
void LeakyReluGradient(GradBuilder& g) {
  const Value dy = g.dy();
  const Value positive = g.x() > 0;
  g.dx() = Where(positive, dy, dy * g.number("alpha"));
}

// dx = dy for x > 0, else dy alpha e^x, which is dy (y + alpha).
void EluGradient(GradBuilder& g) {
  const Value dy = g.dy();
  const Value positive = g.x() > 0;
  const Value slope = g.y() + g.number("alpha");
  g.dx() = Where(positive, dy, dy * slope);
}

// dx = alpha dy for 0 < y < 1, else 0.
void HardSigmoidGradient(GradBuilder& g) {
  const Value y = g.y(), dy = g.dy();
  const Value zero = ScalarLike(dy, 0), one = ScalarLike(dy, 1);
  const Value above = y > zero, below = y < one;
  const Value inside = And(above, below);
  g.dx() = Where(inside, dy * g.number("alpha"), zero);
}

// dx = 0 for x <= -3, dy for x >= 3, else dy (x / 3 + 1 / 2).
void HardSwishGradient(GradBuilder& g) {
  const Value x = g.x(), dy = g.dy();
  const Value bend = dy * (x * (1.0 / 3) + 0.5);
  const Value flat = x <= -3, straight = x >= 3;
  const Value rest = Where(straight, dy, bend);
  g.dx() = Where(flat, ScalarLike(dy, 0), rest);
}

// dx = dy (t + x sigmoid(x) (1 - t^2)) with t = tanh(softplus(x)).
void MishGradient(GradBuilder& g) {
  const Value x = g.x();
  const Value t = Tanh(Softplus(x));
  const Value falloff = -Square(t) + 1;
  const Value bend = x * Sigmoid(x) * falloff;
  g.dx() = g.dy() * (t + bend);
}

// With ds = s (1 - s): silu''(x) = ds (2 + x (1 - 2 s)).
Value SiluSecondSlope(Value x) {
  const Value s = Sigmoid(x);
  const Value ds = s * (-s + 1);
  return ds * (x * (s * -2 + 1) + 2);
}

void SiluGradGradient(GradBuilder& g) {
  const Value ddx = g.dy(), dy = g.x(), x = g.x(1);
  if (g.needs_dx(0)) g.dx() = Op("silu_grad", {ddx, x});
  if (g.needs_dx(1)) {
    const Value slope = SiluSecondSlope(x);
    g.dx(1) = ddx * dy * slope;
  }
}

// x * sigmoid(x)
PatternMatch MatchSilu(const Graph& graph, const Node& root) {
  if (root.op->name != "mul") return {};
  for (size_t i = 0; i < 2; ++i) {
    const ValueId x = root.inputs[i], y = root.inputs[1 - i];
    const Node* sigmoid = graph.producer(y, "sigmoid");
    if (sigmoid != nullptr && sigmoid->inputs[0] == x) return {FindOp("silu"), {x}, {}, {y}};
  }
  return {};
}

constexpr PointwiseRow kRows[] = {
    Unary(
        "relu", "y = max(x, 0).  NaN stays NaN.", {"Relu", 6, 13, 14, 14}, kNumber, 1,
        [](double x) { return x > 0 || std::isnan(x) ? x : 0; },
        [](UnaryGrad& g) {
          return Op("relu_grad", {g.dy, g.y});
        }),
    Binary(
        "relu_grad", "dx = y > 0 ? dy : 0, the gradient of relu from its output y.", {}, kNumber, 1,
        [](double dy, double y) { return y > 0 ? dy : 0; }, ReluGradGradient)
        .Named("dy", "y", "dx")
        .NoGradientOf(1),
    Unary(
        "leaky_relu", "y = x for x > 0, else alpha * x.", {"LeakyRelu", 6, 16}, kFloat, 2,
        [](double x, const AttrMap& attrs) { return x > 0 ? x : Number(attrs, "alpha") * x; },
        LeakyReluGradient)
        .With("alpha", 0.01),
    Unary(
        "elu", "y = x for x > 0, else alpha (e^x - 1).", {"Elu", 6, 22}, kFloat, 4,
        [](double x, const AttrMap& attrs) {
          return x > 0 ? x : Number(attrs, "alpha") * std::expm1(x);
        },
        EluGradient)
        .With("alpha", 1),
    // dx = dy (1 - y^2).
    Unary(
        "tanh", "y = tanh(x).", {"Tanh", 6, 13}, kFloat, 1, [](double x) { return std::tanh(x); },
        [](UnaryGrad& g) {
          const Value slope = -Square(g.y) + 1;
          return g.dy * slope;
        }),
    // dx = dy y (1 - y).
    Unary(
        "sigmoid", "y = 1 / (1 + e^-x).", {"Sigmoid", 6, 13}, kFloat, 4,
        [](double x) { return 1 / (1 + std::exp(-x)); },
        [](UnaryGrad& g) {
          const Value slope = g.y * (-g.y + 1);
          return g.dy * slope;
        }),
    Unary(
        "hard_sigmoid", "y = alpha x + beta, limited to [0, 1].", {"HardSigmoid", 6, 22}, kFloat, 4,
        [](double x, const AttrMap& attrs) {
          const double line = Number(attrs, "alpha") * x + Number(attrs, "beta");
          return line < 0 ? 0 : line > 1 ? 1 : line;
        },
        HardSigmoidGradient)
        .With("alpha", 0.2)
        .With("beta", 0.5),
    Unary(
        "silu", "y = x * sigmoid(x).", {}, kFloat, 4,
        [](double x) { return x / (1 + std::exp(-x)); },
        [](UnaryGrad& g) {
          return Op("silu_grad", {g.dy, g.x});
        })
        .FoundBy(MatchSilu),
    Binary(
        "silu_grad", "dx = dy * silu'(x), the gradient of silu from its input x.", {}, kFloat, 8,
        [](double dy, double x) {
          const double s = 1 / (1 + std::exp(-x));
          return dy * s * (1 + x * (1 - s));
        },
        SiluGradGradient)
        .Named("dy", "x", "dx"),
    Unary(
        "hard_swish", "y = x times x / 6 + 1 / 2 limited to [0, 1].", {"HardSwish", 14, 22}, kFloat,
        5,
        [](double x) {
          const double gate = x / 6 + 0.5;
          return x * (gate < 0 ? 0 : gate > 1 ? 1 : gate);
        },
        HardSwishGradient),
    // As max(x, 0) + ln(1 + e^-|x|), which cannot overflow.  dx = dy sigmoid(x).
    Unary(
        "softplus", "y = ln(1 + e^x).", {"Softplus", 1, 22}, kFloat, 4,
        [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); },
        [](UnaryGrad& g) { return g.dy * Sigmoid(g.x); }),
    // dx = dy / (1 + |x|)^2, as two quotients: the square is beyond f16 from |x| = 255 on.
    Unary(
        "softsign", "y = x / (1 + |x|).", {"Softsign", 1, 22}, kFloat, 3,
        [](double x) { return x / (1 + std::abs(x)); },
        [](UnaryGrad& g) {
          const Value rest = Abs(g.x) + 1;
          return g.dy / rest / rest;
        }),
    // tanh(ln(1 + z)) = n / (n + 2) with n = z (z + 2); beyond 20 it is 1.
    Unary(
        "mish", "y = x tanh(ln(1 + e^x)).", {"Mish", 18, 22}, kFloat, 6,
        [](double x) {
          if (x > 20) return x;
          const double z = std::exp(x), n = z * (z + 2);
          return x * (n / (n + 2));
        },
        MishGradient),
};

}  // namespace

std::vector<OpDef> ActivationOps() { return OpsOf(kRows); }

}  // namespace ridge
