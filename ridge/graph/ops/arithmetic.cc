// Arithmetic: signs, rounding, roots and powers of one number; sums, products, quotients,
// remainders and extrema of two.
//
// Integers: results saturate, quotients go toward zero, x / 0 saturates and 0 / 0 is 0.  Functions
// that are constant almost everywhere have the gradient 0.
#include <cmath>

#include "ridge/graph/ops/shared/pointwise_row.h"

namespace ridge {
namespace {

using enum Operands;

// da = db = dy.
void AddGradient(GradBuilder& g) {
  if (g.needs_dx(0)) g.dx() = g.dy();
  if (g.needs_dx(1)) g.dx(1) = g.dy();
}

// da = dy, db = -dy.
void SubGradient(GradBuilder& g) {
  if (g.needs_dx(0)) g.dx() = g.dy();
  if (g.needs_dx(1)) g.dx(1) = -g.dy();
}

// da = dy * b, db = dy * a.
void MulGradient(GradBuilder& g) {
  const Value dy = g.dy();
  if (g.needs_dx(0)) g.dx() = dy * g.x(1);
  if (g.needs_dx(1)) g.dx(1) = dy * g.x();
}

// da = dy / b, db = -dy / b * y.
void DivGradient(GradBuilder& g) {
  const Value da = g.dy() / g.x(1);
  if (g.needs_dx(0)) g.dx() = da;
  if (g.needs_dx(1)) g.dx(1) = -(da * g.y());
}

// Of pow: da = dy b a^(b - 1); 0 for b = 0, where the product would be 0 * inf at a = 0.
Value BaseGrad(GradBuilder& g) {
  const Value base = g.x(), exponent = g.x(1);
  const Value zero = ScalarLike(base, 0);
  const Value power = Pow(base, exponent + -1);
  const Value slope = exponent * power;
  const Value da = g.dy() * slope;
  return Where(Equal(exponent, zero), zero, da);
}

// Of pow: db = dy y ln(a); 0 for a = 0 and b >= 0, where the product would be 0 * -inf.  NaN for
// a < 0.
Value ExponentGrad(GradBuilder& g) {
  const Value base = g.x(), exponent = g.x(1);
  const Value zero = ScalarLike(base, 0);
  const Value at_zero = Equal(base, zero), grows = exponent >= zero;
  const Value flat = And(at_zero, grows);
  const Value slope = g.y() * Log(base);
  return Where(flat, zero, g.dy() * slope);
}

void PowGradient(GradBuilder& g) {
  if (g.needs_dx(0)) g.dx() = BaseGrad(g);
  if (g.needs_dx(1)) g.dx(1) = ExponentGrad(g);
}

// dy where `mine` wins over `other`, half of it where they are equal, as in PyTorch.
Value Share(GradBuilder& g, const char* wins_over, Value mine, Value other) {
  const Value dy = g.dy(), zero = ScalarLike(dy, 0);
  const Value tie = Equal(mine, other), wins = Op(wins_over, {mine, other});
  const Value whole = Where(wins, dy, zero);
  return Where(tie, dy * 0.5, whole);
}

void ExtremumGradient(GradBuilder& g, const char* wins_over) {
  const Value a = g.x(), b = g.x(1);
  if (g.needs_dx(0)) g.dx() = Share(g, wins_over, a, b);
  if (g.needs_dx(1)) g.dx(1) = Share(g, wins_over, b, a);
}
void MaximumGradient(GradBuilder& g) { ExtremumGradient(g, "greater"); }
void MinimumGradient(GradBuilder& g) { ExtremumGradient(g, "less"); }

// da = dy, db = -dy times, with times = round(a / b).
void RemainderGradient(GradBuilder& g, const char* round) {
  const Value dy = g.dy();
  const Value times = Op(round, {g.x() / g.x(1)});
  if (g.needs_dx(0)) g.dx() = dy;
  if (g.needs_dx(1)) g.dx(1) = -(dy * times);
}
void FmodGradient(GradBuilder& g) { RemainderGradient(g, "trunc"); }
void ModGradient(GradBuilder& g) { RemainderGradient(g, "floor"); }

// Python's %.
double Mod(double a, double b) {
  const double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  return (rest < 0) == (b < 0) ? rest : rest + b;
}

constexpr PointwiseRow kRows[] = {
    // dx = -dy.
    Unary(
        "neg", "y = -x.", {"Neg", 6, 13, 6, 6}, kSigned, 1, [](double x) { return -x; },
        [](UnaryGrad& g) { return -g.dy; })
        .LinearBy(Linear::kJointly),
    // dx = dy * sign(x), so 0 at 0.
    Unary(
        "abs", "y = |x|.", {"Abs", 6, 13, 6, 6}, kSigned, 1, [](double x) { return std::abs(x); },
        [](UnaryGrad& g) { return g.dy * Sign(g.x); }),
    Unary(
        "sign", "y = 1 for x > 0, -1 for x < 0, 0 at 0, NaN for NaN.", {"Sign", 9, 13, 9, 9},
        kSigned, 1,
        [](double x) { return std::isnan(x) ? x : static_cast<double>((x > 0) - (x < 0)); },
        ZeroGradient),
    Unary(
        "floor", "y = the largest integer <= x.", {"Floor", 6, 13}, kFloat, 1,
        [](double x) { return std::floor(x); }, ZeroGradient),
    Unary(
        "ceil", "y = the smallest integer >= x.", {"Ceil", 6, 13}, kFloat, 1,
        [](double x) { return std::ceil(x); }, ZeroGradient),
    Unary(
        "round", "y = the nearest integer; halves go to the even one.", {"Round", 11, 22}, kFloat,
        1, [](double x) { return std::nearbyint(x); }, ZeroGradient),
    Unary(
        "trunc", "y = x without its fraction: the nearest integer toward zero.", {}, kFloat, 1,
        [](double x) { return std::trunc(x); }, ZeroGradient),
    Unary(
        "stop_gradient", "y = x, a constant to the gradient.", {}, kFloat, 0,
        [](double x) { return x; }, nullptr)
        .NoGradientOf(0),
    // dx = dy / (2 y).
    Unary(
        "sqrt", "y = sqrt(x); NaN for x < 0.", {"Sqrt", 6, 13}, kFloat, 1,
        [](double x) { return std::sqrt(x); }, [](UnaryGrad& g) { return g.dy * 0.5 / g.y; }),
    // dx = -dy y^3 / 2.
    Unary(
        "rsqrt", "y = 1 / sqrt(x).", {}, kFloat, 2, [](double x) { return 1 / std::sqrt(x); },
        [](UnaryGrad& g) {
          const Value cube = Square(g.y) * g.y;
          return g.dy * -0.5 * cube;
        }),
    // dx = -dy y^2.
    Unary(
        "reciprocal", "y = 1 / x.", {"Reciprocal", 6, 13}, kFloat, 1,
        [](double x) { return 1 / x; }, [](UnaryGrad& g) { return -(g.dy * Square(g.y)); }),
    // dx = 2 dy x.
    Unary(
        "square", "y = x * x.", {}, kNumber, 1, [](double x) { return x * x; },
        [](UnaryGrad& g) { return g.dy * 2 * g.x; }),
    Binary(
        "add", "y = a + b. Inputs broadcast.", {"Add", 7, 13, 7, 14}, kNumber, 1,
        [](double a, double b) { return a + b; }, AddGradient)
        .LinearBy(Linear::kJointly),
    Binary(
        "sub", "y = a - b. Inputs broadcast.", {"Sub", 7, 13, 7, 14}, kNumber, 1,
        [](double a, double b) { return a - b; }, SubGradient)
        .LinearBy(Linear::kJointly),
    Binary(
        "mul", "y = a * b. Inputs broadcast.", {"Mul", 7, 13, 7, 14}, kNumber, 1,
        [](double a, double b) { return a * b; }, MulGradient)
        .LinearBy(Linear::kEach),
    Binary(
        "div",
        "y = a / b. Inputs broadcast. Integers divide toward zero; x / 0 saturates, 0 / 0 is 0.",
        {"Div", 7, 13, 7, 14}, kNumber, 1, [](double a, double b) { return a / b; }, DivGradient)
        .LinearBy(Linear::kFirst),
    Binary(
        "pow", "y = a^b; NaN for a < 0 and fractional b. Inputs broadcast.", {"Pow", 7, 13, 12},
        kNumber, 1, [](double a, double b) { return std::pow(a, b); }, PowGradient),
    Binary(
        "maximum",
        "y = the larger of a and b; NaN if either is. Inputs broadcast. Ties share the gradient "
        "half and half.",
        {"Max", 8, 13, 12, 12}, kNumber, 1,
        [](double a, double b) { return std::isnan(a) || a > b ? a : b; }, MaximumGradient),
    Binary(
        "minimum",
        "y = the smaller of a and b; NaN if either is. Inputs broadcast. Ties share the gradient "
        "half and half.",
        {"Min", 8, 13, 12, 12}, kNumber, 1,
        [](double a, double b) { return std::isnan(a) || a < b ? a : b; }, MinimumGradient),
    // C's: exact; NaN for b = 0, which is 0 for integers.
    Binary(
        "fmod", "y = a - trunc(a / b) b: the remainder, with the sign of a. Inputs broadcast.",
        {"Mod", 10, 13, 10, 10}, kNumber, 1, [](double a, double b) { return std::fmod(a, b); },
        FmodGradient),
    Binary(
        "mod", "y = a - floor(a / b) b: the remainder, with the sign of b. Inputs broadcast.",
        {"Mod", 10, 13, 10, 10}, kNumber, 2, [](double a, double b) { return Mod(a, b); },
        ModGradient),
};

}  // namespace

std::vector<OpDef> ArithmeticOps() { return OpsOf(kRows); }

}  // namespace ridge
