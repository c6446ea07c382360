// softmax_cross_entropy: loss = log(sum(exp(logits))) - logits[label], one loss for each row.
//
// The logarithm is taken of sums of exp(x - max), so no finite logits overflow.  The mean over rows
// is left to the graph: it differs with ignored rows and with gradient accumulation.  What else is
// asked of a row (log_sums by the gradient, best by metrics) comes of the same reading of it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ridge/graph/axes.h"
#include "ridge/graph/grad_builder.h"
#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/cross_entropy.h"
#include "ridge/graph/ops/shared/reduce.h"

namespace ridge {
namespace {

constexpr int64_t kMostExtraOutputs = 2;
constexpr size_t kLogSums = 1, kBest = 2;  // outputs

// A row without classes has no best.
Status CheckExtraOutputs(const OpCall& call) {
  const int64_t count = call.integer("extra_outputs");
  if (count < 0 || count > kMostExtraOutputs) {
    return CallError(call, fmt::format("extra_outputs is {}; it must be 0, 1 or 2", count));
  }
  const TensorType& logits = call.inputs[0];
  const bool lacks_best = logits.dims.back() == 0 && call.inputs[1].elements() > 0;
  if (count <= 1 || !lacks_best) return Status();
  return CallError(call, fmt::format("logits is {}; there is no best of no classes; extra_outputs "
                                     "must be 0 or 1",
                                     TypeToString(logits)));
}

// logits: float [..., C].  labels: i64 or i32 [...].  losses, log_sums: [...], f64 for f64, else
// f32.  best: i64 [...].
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  RIDGE_RETURN_IF_ERROR(CheckLogitsAndLabels(call));
  RIDGE_RETURN_IF_ERROR(CheckExtraOutputs(call));
  const Dims& rows = call.inputs[1].dims;
  const TensorType statistic{StatisticDType(call.inputs[0].dtype), rows};
  std::vector<TensorType> types = {statistic, statistic, {DType::kI64, rows}};
  types.resize(static_cast<size_t>(1 + call.integer("extra_outputs")));
  return types;
}

// Per logit: max, subtract, exp, add.
Cost EstimateCost(const OpCall& call) { return StreamingCost(call, 4 * call.inputs[0].elements()); }

// dlog_sums * softmax(logits).
Value LogSumsGrad(GradBuilder& g) {
  const Value p = Op("softmax", {g.x()}, {{"axis", -1}});
  Dims column = g.dy(kLogSums).dims();
  column.push_back(1);
  return Cast(Reshape(g.dy(kLogSums), column), p.dtype()) * p;
}

// dlogits = (softmax(logits) - one_hot(labels)) * dlosses, and what reaches them by log_sums.
void Gradient(GradBuilder& g) {
  const Value log_sums = g.integer("extra_outputs") > 0 ? g.y(kLogSums) : Value();
  const Value by_losses = Op("softmax_cross_entropy_grad", {g.x(), g.x(1), g.dy(), log_sums},
                             PickAttrs(g.attrs(), {"ignore_index"}));
  const bool by_log_sums = log_sums.valid() && g.has_dy(kLogSums);
  g.dx() = by_log_sums ? by_losses + LogSumsGrad(g) : by_losses;
}

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const int64_t classes = call.inputs[0].dims.back();
  const double* labels = in[1];
  double* losses = out[0];
  for (int64_t row = 0; row < call.inputs[1].elements(); ++row) {
    const double* logits = in[0] + row * classes;
    if (kLogSums < out.size()) out[kLogSums][row] = LogSumExp(logits, classes);
    if (kBest < out.size())
      out[kBest][row] = static_cast<double>(FirstLargest(logits, classes, /*stride=*/1));
    switch (KindOfRow(labels[row], classes, call.integer("ignore_index"))) {
      case RowKind::kIgnored:
        losses[row] = 0;
        break;
      case RowKind::kInvalid:
        losses[row] = std::numeric_limits<double>::quiet_NaN();
        break;
      case RowKind::kCounted:
        losses[row] = LogSumExp(logits, classes) - logits[static_cast<int64_t>(labels[row])];
        break;
    }
  }
}

Axes FindAxes(const OpCall& call) {
  Axes axes;
  for (int d = 0; d < call.inputs[1].rank(); ++d) axes.push_back(Mapped(call, {d, d}, d));
  return axes;
}

}  // namespace

OpDef SoftmaxCrossEntropyDef() {
  return {
      .name = "softmax_cross_entropy",
      .doc =
          "The cross entropy of softmax(logits [..., C]) against labels [...] in [0, C): losses "
          "[...] = log(sum(exp(logits))) - logits[label], in f32 (f64 for f64). A row whose "
          "label is `ignore_index` has loss 0; any other label outside [0, C) gives NaN. "
          "`extra_outputs` says how many of these follow, of every row: log_sums = "
          "log(sum(exp(logits))), and best = argmax(logits) over the classes.",
      .input_names = {"logits", "labels"},
      .output_names = {"losses", "log_sums", "best"},
      .attr_defaults = {{"extra_outputs", 0}, {"ignore_index", -100}},
      .cost_class = CostClass::kReduce,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .gradient = Gradient,
      .no_gradient_inputs = {1},
      .recompute = Recompute::kCheap,
      .onnx = {"SoftmaxCrossEntropyLoss", 12, 13},
      .axes = FindAxes,
      .reference = Reference,
  };
}

}  // namespace ridge
