// ONNX converters: ai.onnx.preview.training: gradients and optimizers as nodes.
//
// An optimizer updates several tensors at once; its inputs are grouped: R, T, all tensors, all
// their gradients, then each kind of state.  Outputs: all tensors, then each kind of state.
#include <fmt/format.h>

#include "ridge/graph/autodiff.h"
#include "ridge/onnx/import/converter.h"
#include "ridge/onnx/import/importer.h"

namespace ridge {
namespace {

// y = d(sum of y) / d(xs).  The inputs are the values that xs and zs name: the gradient at other
// points would be another computation.
Status ConvertGradient(OnnxNode& n) {
  std::vector<std::string> names = n.texts("xs");
  const size_t wanted = names.size();
  for (const std::string& z : n.texts("zs")) names.push_back(z);
  if (n.input_count() != names.size() || wanted == 0 || n.output_count() > wanted) {
    return n.Error(fmt::format("has {} inputs and {} outputs for {} names in xs and zs",
                               n.input_count(), n.output_count(), names.size()));
  }
  std::vector<Value> xs;
  for (size_t i = 0; i < names.size(); ++i) {
    const Value named = n.importer().ValueOf(names[i]);
    if (!named.valid() || named != n[i]) {
      return n.Unsupported(
          fmt::format("input {} is not the value '{}' that xs or zs names", i, names[i]));
    }
    if (i < wanted) xs.push_back(named);
  }
  const Value y = n.importer().ValueOf(n.text("y", ""));
  if (!y.valid()) return n.Error("y names no value: '" + n.text("y", "") + "'");
  if (!IsFloat(y.dtype())) return n.Error("y is not float; it has no gradient");
  const Value loss = y.dims().empty() ? y : Sum(y);
  RIDGE_ASSIGN_OR_RETURN(const std::vector<Value> gradients, AppendGradients(n.b(), loss, xs));
  for (size_t i = 0; i < gradients.size(); ++i) n.Set(i, gradients[i]);
  return n.status();
}

// One tensor's part of an optimizer's inputs.
struct Updated {
  Value rate, count;  // R and T, in the tensor's element type, rank 0
  Value x, gradient, first, second;
};
// The new tensor and its new states.
using UpdateFormula = std::vector<Value> (*)(OnnxNode& n, const Updated& u);

Value AsScalar(Value v, DType dtype) { return Cast(v.dims().empty() ? v : Reshape(v, {}), dtype); }

Status CheckOptimizer(OnnxNode& n, size_t kinds) {
  if (n.input_count() < 2 + kinds || (n.input_count() - 2) % kinds != 0) {
    return n.Error(
        fmt::format("has {} inputs; it needs 2 and {} for each tensor", n.input_count(), kinds));
  }
  RIDGE_RETURN_IF_ERROR(n.Need(n.input_count()));
  const size_t tensors = (n.input_count() - 2) / kinds;
  for (size_t i = 0; i < n.input_count(); ++i) {
    if (i < 2 && n.type(i).elements() != 1) return n.Error("R and T must be single numbers");
    if (i >= 2 && (n.type(i) != n.type(2 + (i - 2) % tensors) || !IsFloat(n.type(i).dtype))) {
      return n.Error(fmt::format("input {} is {}; its tensor is {}", i, TypeToString(n.type(i)),
                                 TypeToString(n.type(2 + (i - 2) % tensors))));
    }
  }
  return Status();
}

// `kinds` inputs a tensor: itself, its gradient, and its states.
Status ConvertOptimizer(OnnxNode& n, size_t kinds, UpdateFormula formula) {
  RIDGE_RETURN_IF_ERROR(CheckOptimizer(n, kinds));
  const size_t tensors = (n.input_count() - 2) / kinds;
  for (size_t t = 0; t < tensors; ++t) {
    const auto part = [&](size_t kind) {
      return kind < kinds ? n[2 + kind * tensors + t] : Value();
    };
    const DType dtype = n.type(2 + t).dtype;
    const Value rate = n[0], count = n[1];
    if (!n.ok()) return n.status();
    const Updated u = {.rate = AsScalar(rate, dtype),
                       .count = AsScalar(count, dtype),
                       .x = part(0),
                       .gradient = part(1),
                       .first = part(2),
                       .second = part(3)};
    if (!n.ok()) return n.status();
    const std::vector<Value> results = formula(n, u);
    for (size_t i = 0; i < results.size(); ++i) n.Set(i * tensors + t, results[i]);
  }
  return n.status();
}

// G + norm_coefficient * X
Value Regularized(OnnxNode& n, const Updated& u, double fallback = 0) {
  const double norm = n.number("norm_coefficient", fallback);
  return norm == 0 ? u.gradient : u.x * norm + u.gradient;
}

// r = R / (1 + T * decay);  H_new = H + G^2;  X - r * G / (sqrt(H_new) + epsilon)
std::vector<Value> AdagradFormula(OnnxNode& n, const Updated& u) {
  const Value decay = u.count * n.number("decay_factor", 0) + 1;
  const Value g = Regularized(n, u);
  const Value h = u.first + g * g;
  const Value adaptive = Sqrt(h) + n.number("epsilon", 1e-6);
  const Value step = u.rate / decay * g / adaptive;
  return {u.x - step, h};
}

// 1 - base^T
Value Correction(double base, Value count) {
  const Value power = Pow(ScalarLike(count, base), count);
  return -power + 1;
}

// R * sqrt(1 - beta^T) / (1 - alpha^T), and R itself at T = 0.
Value AdamRate(OnnxNode& n, const Updated& u, double alpha, double beta) {
  GraphBuilder& b = n.b();
  // At T = 0 the quotient is not read, but its gradient would be 0 * (1 / 0).
  const DType dtype = u.count.dtype();
  const Value count = Maximum(u.count, b.Scalar(dtype, 1));
  const Value first = Correction(alpha, count);
  const Value corrected = u.rate * Sqrt(Correction(beta, count)) / first;
  return Where(u.count > b.Scalar(dtype, 0), corrected, u.rate);
}

// V_new = alpha V + (1 - alpha) G;  H_new = beta H + (1 - beta) G^2;
// X - rate * V_new / (sqrt(H_new) + epsilon), times 1 - norm_coefficient_post
std::vector<Value> AdamFormula(OnnxNode& n, const Updated& u) {
  const double alpha = n.number("alpha", 0.9), beta = n.number("beta", 0.999);
  const Value g = Regularized(n, u);
  const Value new_v = g * (1 - alpha);
  const Value v = u.first * alpha + new_v;
  const Value new_h = g * g * (1 - beta);
  const Value h = u.second * beta + new_h;
  const Value root = Sqrt(h) + n.number("epsilon", 1e-6);
  Value x = u.x - AdamRate(n, u, alpha, beta) * v / root;
  const double post = n.number("norm_coefficient_post", 0);
  if (post != 0) x = x * (1 - post);
  return {x, v, h};
}

// V_new = alpha V + beta G (beta is 1 at T = 0);  X - R * V_new, or nesterov
// X - R * (G + alpha V_new)
std::vector<Value> MomentumFormula(OnnxNode& n, const Updated& u) {
  GraphBuilder& b = n.b();
  const double alpha = n.number("alpha", 0), beta = n.number("beta", 1);
  const DType dtype = u.count.dtype();
  const Value g = Regularized(n, u);
  const Value one = b.Scalar(dtype, 1), later = b.Scalar(dtype, beta);
  const Value scale = Where(u.count > 0, later, one);
  const Value step = scale * g;
  const Value v = u.first * alpha + step;
  const bool nesterov = n.text("mode", "standard") == "nesterov";
  const Value direction = nesterov ? g + v * alpha : v;
  return {u.x - u.rate * direction, v};
}

Status ConvertAdagrad(OnnxNode& n) { return ConvertOptimizer(n, 3, AdagradFormula); }
Status ConvertAdam(OnnxNode& n) { return ConvertOptimizer(n, 4, AdamFormula); }
Status ConvertMomentum(OnnxNode& n) { return ConvertOptimizer(n, 3, MomentumFormula); }

constexpr char kDomain[] = "ai.onnx.preview.training";
constexpr OnnxConverter kTable[] = {
    {kDomain, "Adagrad", ConvertAdagrad},
    {kDomain, "Adam", ConvertAdam},
    {kDomain, "Gradient", ConvertGradient},
    {kDomain, "Momentum", ConvertMomentum},
};

}  // namespace

std::span<const OnnxConverter> OnnxTrainingConverters() { return kTable; }

}  // namespace ridge
