// The two forms of gelu and their slopes, shared by gelu and gelu_grad.
//
//   "none":  y = x Phi(x) with Phi(x) = (1 + erf(x / sqrt(2))) / 2, the normal distribution.
//   "tanh":  y = x (1 + tanh(u)) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3).
// Source: Hendrycks and Gimpel, "Gaussian error linear units", 2016.
#pragma once
#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "ridge/graph/ops/shared/elementwise.h"
#include "ridge/graph/pattern.h"

namespace ridge {

inline constexpr double kGeluCubic = 0.044715;
inline constexpr double kGeluScale = std::numbers::inv_sqrtpi * std::numbers::sqrt2;

inline bool GeluUsesTanh(const AttrMap& attrs) { return attrs.text("approximate") == "tanh"; }

inline double Gelu(double x, bool use_tanh) {
  if (!use_tanh) return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2));
  return 0.5 * x * (1 + std::tanh(kGeluScale * (x + kGeluCubic * x * x * x)));
}

inline double GeluSlope(double x, bool use_tanh) {
  if (!use_tanh) {
    const double density = std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi);
    return 0.5 * (1 + std::erf(x / std::numbers::sqrt2)) + x * density;
  }
  const double t = std::tanh(kGeluScale * (x + kGeluCubic * x * x * x));
  const double du = kGeluScale * (1 + 3 * kGeluCubic * x * x);
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * du;
}

PatternMatch MatchGelu(const Graph& graph, const Node& root);  // gelu_pattern.cc

inline Result<std::vector<TensorType>> InferGelu(const OpCall& call) {
  const std::string& form = call.text("approximate");
  if (form != "none" && form != "tanh") {
    return CallError(call,
                     fmt::format("approximate is \"{}\"; it must be \"none\" or \"tanh\"", form));
  }
  return InferPointwise<Operands::kFloat>(call);
}

}  // namespace ridge
