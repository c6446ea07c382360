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

double Number(const AttrMap& attrs, const char* name) { return std::get<double>(attrs.at(name)); }

// Linear in dy; y only switches.
void ReluGradGradient(GradBuilder& g) {
  SetBroadcastGrad(g, 0, g.b().Op("relu_grad", {g.output_grad(0), g.input(1)}));
}

// dx = dy for x > 0, else alpha * dy.
void LeakyReluGradient(GradBuilder& g) {
  GraphBuilder& b = g.b();
  const Value dy = g.output_grad(0);
  const Value positive = b.Op("greater", {g.input(0), b.Scalar(b.type(dy).dtype, 0)});
  g.set_input_grad(0, b.Where(positive, dy, b.MulScalar(dy, g.number("alpha"))));
}

// dx = dy for x > 0, else dy alpha e^x, which is dy (y + alpha).
void EluGradient(GradBuilder& g) {
  GraphBuilder& b = g.b();
  const Value dy = g.output_grad(0);
  const Value positive = b.Op("greater", {g.input(0), b.Scalar(b.type(dy).dtype, 0)});
  const Value slope = b.AddScalar(g.output(0), g.number("alpha"));
  g.set_input_grad(0, b.Where(positive, dy, b.Mul(dy, slope)));
}

// dx = alpha dy for 0 < y < 1, else 0.
void HardSigmoidGradient(GradBuilder& g) {
  GraphBuilder& b = g.b();
  const Value y = g.output(0), dy = g.output_grad(0);
  const Value zero = b.Scalar(b.type(dy).dtype, 0), one = b.Scalar(b.type(dy).dtype, 1);
  const Value inside = b.Op("logical_and", {b.Op("greater", {y, zero}), b.Op("less", {y, one})});
  g.set_input_grad(0, b.Where(inside, b.MulScalar(dy, g.number("alpha")), zero));
}

// dx = 0 for x <= -3, dy for x >= 3, else dy (x / 3 + 1 / 2).
void HardSwishGradient(GradBuilder& g) {
  GraphBuilder& b = g.b();
  const Value x = g.input(0), dy = g.output_grad(0);
  const DType dtype = b.type(dy).dtype;
  const Value bend = b.Mul(dy, b.AddScalar(b.MulScalar(x, 1.0 / 3), 0.5));
  const Value flat = b.Op("less_equal", {x, b.Scalar(dtype, -3)});
  const Value straight = b.Op("greater_equal", {x, b.Scalar(dtype, 3)});
  g.set_input_grad(0, b.Where(flat, b.Scalar(dtype, 0), b.Where(straight, dy, bend)));
}

// dx = dy (t + x sigmoid(x) (1 - t^2)) with t = tanh(softplus(x)).
void MishGradient(GradBuilder& g) {
  GraphBuilder& b = g.b();
  const Value x = g.input(0);
  const Value t = b.Op("tanh", {b.Op("softplus", {x})});
  const Value falloff = b.AddScalar(b.Neg(b.Op("square", {t})), 1);
  const Value bend = b.Mul(b.Mul(x, b.Op("sigmoid", {x})), falloff);
  g.set_input_grad(0, b.Mul(g.output_grad(0), b.Add(t, bend)));
}

// With ds = s (1 - s): silu''(x) = ds (2 + x (1 - 2 s)).
Value SiluSecondSlope(GraphBuilder& b, Value x) {
  const Value s = b.Op("sigmoid", {x});
  const Value ds = b.Mul(s, b.AddScalar(b.Neg(s), 1));
  return b.Mul(ds, b.AddScalar(b.Mul(x, b.AddScalar(b.MulScalar(s, -2), 1)), 2));
}

void SiluGradGradient(GradBuilder& g) {
  GraphBuilder& b = g.b();
  const Value ddx = g.output_grad(0), dy = g.input(0), x = g.input(1);
  if (g.needs_grad(0)) SetBroadcastGrad(g, 0, b.Op("silu_grad", {ddx, x}));
  if (g.needs_grad(1)) SetBroadcastGrad(g, 1, b.Mul(b.Mul(ddx, dy), SiluSecondSlope(b, x)));
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
          return g.b.Op("relu_grad", {g.dy, g.y});
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
          const Value slope = g.b.AddScalar(g.b.Neg(g.b.Op("square", {g.y})), 1);
          return g.b.Mul(g.dy, slope);
        }),
    // dx = dy y (1 - y).
    Unary(
        "sigmoid", "y = 1 / (1 + e^-x).", {"Sigmoid", 6, 13}, kFloat, 4,
        [](double x) { return 1 / (1 + std::exp(-x)); },
        [](UnaryGrad& g) {
          const Value slope = g.b.Mul(g.y, g.b.AddScalar(g.b.Neg(g.y), 1));
          return g.b.Mul(g.dy, slope);
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
          return g.b.Op("silu_grad", {g.dy, g.x});
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
        [](UnaryGrad& g) { return g.b.Mul(g.dy, g.b.Op("sigmoid", {g.x})); }),
    // dx = dy / (1 + |x|)^2, as two quotients: the square is beyond f16 from |x| = 255 on.
    Unary(
        "softsign", "y = x / (1 + |x|).", {"Softsign", 1, 22}, kFloat, 3,
        [](double x) { return x / (1 + std::abs(x)); },
        [](UnaryGrad& g) {
          const Value rest = g.b.AddScalar(g.b.Op("abs", {g.x}), 1);
          return g.b.Div(g.b.Div(g.dy, rest), rest);
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
