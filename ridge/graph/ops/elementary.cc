// Elementary functions of one number: exponential, logarithm, error function, and the circular and
// hyperbolic functions with their inverses.
#include <cmath>
#include <numbers>

#include "ridge/graph/ops/shared/pointwise_row.h"

namespace ridge {
namespace {

using enum Operands;

// (1 - x) (1 + x), which is exact beside 1 where 1 - x^2 is not.
Value OneMinusSquare(UnaryGrad& g) {
  const Value sum = g.x + 1;
  return (-g.x + 1) * sum;
}

constexpr PointwiseRow kRows[] = {
    // dx = dy * y.
    Unary(
        "exp", "y = e^x.", {"Exp", 6, 13}, kFloat, 1, [](double x) { return std::exp(x); },
        [](UnaryGrad& g) { return g.dy * g.y; }),
    // dx = dy / x.
    Unary(
        "log", "y = ln(x); NaN for x < 0 and -inf at 0.", {"Log", 6, 13}, kFloat, 1,
        [](double x) { return std::log(x); }, [](UnaryGrad& g) { return g.dy / g.x; }),
    // dx = dy * 2 / sqrt(pi) * e^(-x^2).
    Unary(
        "erf", "y = 2 / sqrt(pi) * integral of e^(-t^2) for t from 0 to x.", {"Erf", 9, 13, 9, 9},
        kFloat, 1, [](double x) { return std::erf(x); },
        [](UnaryGrad& g) {
          const Value bell = Exp(-Square(g.x));
          return g.dy * (2 / std::sqrt(std::numbers::pi)) * bell;
        }),
    // dx = dy cos(x).
    Unary(
        "sin", "y = sin(x), x in radians.", {"Sin", 7, 22}, kFloat, 1,
        [](double x) { return std::sin(x); }, [](UnaryGrad& g) { return g.dy * Cos(g.x); }),
    // dx = -dy sin(x).
    Unary(
        "cos", "y = cos(x), x in radians.", {"Cos", 7, 22}, kFloat, 1,
        [](double x) { return std::cos(x); }, [](UnaryGrad& g) { return -(g.dy * Sin(g.x)); }),
    // dx = dy (1 + y^2).
    Unary(
        "tan", "y = tan(x).", {"Tan", 7, 22}, kFloat, 1, [](double x) { return std::tan(x); },
        [](UnaryGrad& g) { return g.dy * (Square(g.y) + 1); }),
    // dx = dy / sqrt((1 - x) (1 + x)).
    Unary(
        "asin", "y = arcsin(x); NaN outside [-1, 1].", {"Asin", 7, 22}, kFloat, 1,
        [](double x) { return std::asin(x); },
        [](UnaryGrad& g) { return g.dy / Sqrt(OneMinusSquare(g)); }),
    // dx = -dy / sqrt((1 - x) (1 + x)).
    Unary(
        "acos", "y = arccos(x); NaN outside [-1, 1].", {"Acos", 7, 22}, kFloat, 1,
        [](double x) { return std::acos(x); },
        [](UnaryGrad& g) { return -(g.dy / Sqrt(OneMinusSquare(g))); }),
    // dx = dy / (1 + x^2).
    Unary(
        "atan", "y = arctan(x).", {"Atan", 7, 22}, kFloat, 1, [](double x) { return std::atan(x); },
        [](UnaryGrad& g) { return g.dy / (Square(g.x) + 1); }),
    // dx = dy cosh(x).
    Unary(
        "sinh", "y = sinh(x).", {"Sinh", 9, 22}, kFloat, 1, [](double x) { return std::sinh(x); },
        [](UnaryGrad& g) { return g.dy * Op("cosh", {g.x}); }),
    // dx = dy sinh(x).
    Unary(
        "cosh", "y = cosh(x).", {"Cosh", 9, 22}, kFloat, 1, [](double x) { return std::cosh(x); },
        [](UnaryGrad& g) { return g.dy * Op("sinh", {g.x}); }),
    // dx = dy / sqrt(x^2 + 1).
    Unary(
        "asinh", "y = arsinh(x).", {"Asinh", 9, 22}, kFloat, 1,
        [](double x) { return std::asinh(x); },
        [](UnaryGrad& g) { return g.dy / Sqrt(Square(g.x) + 1); }),
    // dx = dy / sqrt((x - 1) (x + 1)).
    Unary(
        "acosh", "y = arcosh(x); NaN below 1.", {"Acosh", 9, 22}, kFloat, 1,
        [](double x) { return std::acosh(x); },
        [](UnaryGrad& g) {
          const Value sum = g.x + 1;
          return g.dy / Sqrt((g.x + -1) * sum);
        }),
    // dx = dy / ((1 - x) (1 + x)).
    Unary(
        "atanh", "y = artanh(x); NaN outside [-1, 1].", {"Atanh", 9, 22}, kFloat, 1,
        [](double x) { return std::atanh(x); },
        [](UnaryGrad& g) { return g.dy / OneMinusSquare(g); }),
};

}  // namespace

std::vector<OpDef> ElementaryOps() { return OpsOf(kRows); }

}  // namespace ridge
