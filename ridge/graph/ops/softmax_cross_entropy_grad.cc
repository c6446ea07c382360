// softmax_cross_entropy_grad: dlogits = (softmax(logits) - one_hot(labels)) * dlosses.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ridge/graph/axes.h"
#include "ridge/graph/grad_builder.h"
#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/cross_entropy.h"

namespace ridge {
namespace {

constexpr size_t kLogSums = 3;  // input

// logits: float [..., C].  labels: i64 or i32 [...].  dlosses, log_sums: [...].  dlogits: as
// logits, or of out_dtype.
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  RIDGE_RETURN_IF_ERROR(CheckLogitsAndLabels(call));
  const TensorType row{StatisticDType(call.inputs[0].dtype), call.inputs[1].dims};
  constexpr const char* kWhy = "what softmax_cross_entropy gives";
  RIDGE_RETURN_IF_ERROR(CheckType(call, 2, "dlosses", row, kWhy));
  if (call.has_input(kLogSums))
    RIDGE_RETURN_IF_ERROR(CheckType(call, kLogSums, "log_sums", row, kWhy));
  RIDGE_ASSIGN_OR_RETURN(const DType out, FloatOutDType(call));
  return std::vector<TensorType>{{out, call.inputs[0].dims}};
}

// Per logit: max, subtract, exp, add, divide, multiply; with log_sums subtract, exp, multiply.
Cost EstimateCost(const OpCall& call) {
  return StreamingCost(call, (call.has_input(kLogSums) ? 3 : 6) * call.inputs[0].elements());
}

// One number a row, in the dtype of the logits and with a dimension for the classes.
Value OverClasses(GradBuilder& g, Value row) {
  Dims column = row.dims();
  column.push_back(1);
  return Cast(Reshape(row, column), g.x().dtype());
}

// dlosses where the label counts.
Value CountedDLosses(GradBuilder& g) {
  const Value ignored = Equal(g.x(1), static_cast<double>(g.integer("ignore_index")));
  return Where(ignored, ScalarLike(g.x(2), 0), g.x(2));
}

// exp(logits - log_sums).
Value Shares(GradBuilder& g) {
  if (!g.x(kLogSums).valid()) return Op("softmax", {g.x()}, {{"axis", -1}});
  const Value below = g.x() - OverClasses(g, g.x(kLogSums));
  return Exp(below);
}

// d(dlosses) = sum(g * u), with u = dlogits / dlosses: the same operator, its dlosses all 1.
Value LossesGrad(GradBuilder& g) {
  GraphBuilder& b = g.b();
  const TensorType rows = g.x(2).type();
  const Value ones = Expand(b.Scalar(rows.dtype, 1), rows.dims);
  const Value u = Op("softmax_cross_entropy_grad", {g.x(), g.x(1), ones, g.x(kLogSums)}, g.attrs());
  const Value product = g.dy() * u;
  return Cast(Sum(product, {-1}), rows.dtype);
}

// With p = exp(logits - log_sums): d(logits) = dlosses * p * (g - sum(p * g)), where the sum is
// what reaches them by log_sums; 0 in ignored rows.
Value LogitsGrad(GradBuilder& g, Value p) {
  const Value ddlogits = g.dy();
  const Value weights = OverClasses(g, CountedDLosses(g));
  if (g.x(kLogSums).valid()) return weights * p * ddlogits;
  const Value mean = Sum(p * ddlogits, {-1}, /*keep_dims=*/true);
  const Value centered = ddlogits - mean;
  return weights * p * centered;
}

// d(log_sums) = -dlosses * sum(p * g); 0 in ignored rows.
Value LogSumsGrad(GradBuilder& g, Value p) {
  const Value sum = Cast(Sum(p * g.dy(), {-1}), g.x(kLogSums).dtype());
  const Value weight = CountedDLosses(g);
  return weight * sum * -1.0;
}

void Gradient(GradBuilder& g) {
  if (g.needs_dx(2)) g.dx(2) = LossesGrad(g);
  if (!g.needs_dx(0) && !g.needs_dx(kLogSums)) return;
  const Value p = Shares(g);
  if (g.needs_dx(0)) g.dx() = LogitsGrad(g, p);
  if (g.needs_dx(kLogSums)) g.dx(kLogSums) = LogSumsGrad(g, p);
}

void CountedRow(const double* logits, double log_sum, int64_t classes, int64_t label, double dloss,
                double* dlogits) {
  for (int64_t k = 0; k < classes; ++k) {
    dlogits[k] = (std::exp(logits[k] - log_sum) - (k == label ? 1 : 0)) * dloss;
  }
}

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const int64_t classes = call.inputs[0].dims.back();
  const double *labels = in[1], *dlosses = in[2];
  const double* log_sums = call.has_input(kLogSums) ? in[kLogSums] : nullptr;
  for (int64_t row = 0; row < call.inputs[1].elements(); ++row) {
    const double* logits = in[0] + row * classes;
    double* dlogits = out[0] + row * classes;
    switch (KindOfRow(labels[row], classes, call.integer("ignore_index"))) {
      case RowKind::kIgnored:
        std::fill_n(dlogits, classes, 0.0);
        break;
      case RowKind::kInvalid:
        std::fill_n(dlogits, classes, std::numeric_limits<double>::quiet_NaN());
        break;
      case RowKind::kCounted: {
        const double log_sum = log_sums == nullptr ? LogSumExp(logits, classes) : log_sums[row];
        CountedRow(logits, log_sum, classes, static_cast<int64_t>(labels[row]), dlosses[row],
                   dlogits);
        break;
      }
    }
  }
}

Axes FindSharedAxes(const OpCall& call) {
  Axes axes;
  for (int d = 0; d < call.inputs[1].rank(); ++d) axes.push_back(Mapped(call, {d, d, d, d}, d));
  return axes;
}

}  // namespace

OpDef SoftmaxCrossEntropyGradDef() {
  return {
      .name = "softmax_cross_entropy_grad",
      .doc =
          "The gradient of logits [..., C] in softmax_cross_entropy: dlogits = (softmax(logits) "
          "- one_hot(labels)) * dlosses [...]; 0 in rows whose label is `ignore_index`, NaN in "
          "rows with another label outside [0, C). softmax(logits) = exp(logits - log_sums), where "
          "log_sums [...] are given or found. dlogits is of `out_dtype`; empty: that of logits.",
      .input_names = {"logits", "labels", "dlosses", "log_sums?"},
      .output_names = {"dlogits"},
      .attr_defaults = {{"ignore_index", -100}, {"out_dtype", ""}},
      .cost_class = CostClass::kReduce,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .gradient = Gradient,
      .no_gradient_inputs = {1},
      .in_place = {{0, 0}},
      .recompute = Recompute::kCheap,
      .shared_axes = FindSharedAxes,
      .reference = Reference,
  };
}

}  // namespace ridge
