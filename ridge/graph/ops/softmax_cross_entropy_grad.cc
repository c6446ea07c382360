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

// logits: float [..., C].  labels: i64 or i32 [...].  dlosses: [...].  dlogits: as logits, or of
// out_dtype.
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  RIDGE_RETURN_IF_ERROR(CheckLogitsAndLabels(call));
  RIDGE_RETURN_IF_ERROR(CheckType(call, 2, "dlosses",
                                  {StatisticDType(call.inputs[0].dtype), call.inputs[1].dims},
                                  "what softmax_cross_entropy gives"));
  RIDGE_ASSIGN_OR_RETURN(const DType out, FloatOutDType(call));
  return std::vector<TensorType>{{out, call.inputs[0].dims}};
}

// Per logit: max, subtract, exp, add, divide, multiply.
Cost EstimateCost(const OpCall& call) {
  Cost cost{.flops = 6 * call.inputs[0].elements(), .bytes_written = call.outputs[0].bytes()};
  for (const TensorType& type : call.inputs) cost.bytes_read += type.bytes();
  return cost;
}

// d(dlosses) = sum(g * u), with u = dlogits / dlosses: the same operator, its dlosses all 1.
Value LossesGrad(GradBuilder& g) {
  GraphBuilder& b = g.b();
  const TensorType rows = g.x(2).type();
  const Value ones = Expand(b.Scalar(rows.dtype, 1), rows.dims);
  const Value u = Op("softmax_cross_entropy_grad", {g.x(), g.x(1), ones}, g.attrs());
  const Value product = g.dy() * u;
  return Cast(Sum(product, {-1}), rows.dtype);
}

// d(logits) = dlosses * p * (g - sum(p * g)), with p = softmax(logits); 0 in ignored rows.
Value LogitsGrad(GradBuilder& g) {
  const Value logits = g.x(), labels = g.x(1), dlosses = g.x(2);
  const Value ddlogits = g.dy();
  const TensorType rows = dlosses.type();
  Dims column = rows.dims;
  column.push_back(1);
  const Value p = Op("softmax", {logits}, {{"axis", -1}});
  const Value mean = Sum(p * ddlogits, {-1}, /*keep_dims=*/true);
  const auto ignore_index = static_cast<double>(g.integer("ignore_index"));
  const Value ignored = Equal(labels, ignore_index);
  const Value weight = Where(ignored, ScalarLike(dlosses, 0), dlosses);
  const Value weights = Cast(Reshape(weight, column), logits.dtype());
  const Value centered = ddlogits - mean;
  return weights * p * centered;
}

void Gradient(GradBuilder& g) {
  if (g.needs_dx(2)) g.dx(2) = LossesGrad(g);
  if (g.needs_dx(0)) g.dx() = LogitsGrad(g);
}

void CountedRow(const double* logits, int64_t classes, int64_t label, double dloss,
                double* dlogits) {
  const double log_sum = LogSumExp(logits, classes);
  for (int64_t k = 0; k < classes; ++k) {
    dlogits[k] = (std::exp(logits[k] - log_sum) - (k == label ? 1 : 0)) * dloss;
  }
}

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const int64_t classes = call.inputs[0].dims.back();
  const double *labels = in[1], *dlosses = in[2];
  for (int64_t row = 0; row < call.inputs[1].elements(); ++row) {
    double* dlogits = out[0] + row * classes;
    switch (KindOfRow(labels[row], classes, call.integer("ignore_index"))) {
      case RowKind::kIgnored:
        std::fill_n(dlogits, classes, 0.0);
        break;
      case RowKind::kInvalid:
        std::fill_n(dlogits, classes, std::numeric_limits<double>::quiet_NaN());
        break;
      case RowKind::kCounted:
        CountedRow(in[0] + row * classes, classes, static_cast<int64_t>(labels[row]), dlosses[row],
                   dlogits);
        break;
    }
  }
}

Axes FindSharedAxes(const OpCall& call) {
  Axes axes;
  for (int d = 0; d < call.inputs[1].rank(); ++d) axes.push_back(Mapped(call, {d, d, d}, d));
  return axes;
}

}  // namespace

OpDef SoftmaxCrossEntropyGradDef() {
  return {
      .name = "softmax_cross_entropy_grad",
      .doc =
          "The gradient of logits [..., C] in softmax_cross_entropy: dlogits = (softmax(logits) "
          "- one_hot(labels)) * dlosses [...]; 0 in rows whose label is `ignore_index`, NaN in "
          "rows with another label outside [0, C). dlogits is of `out_dtype`; empty: that of "
          "logits.",
      .input_names = {"logits", "labels", "dlosses"},
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
