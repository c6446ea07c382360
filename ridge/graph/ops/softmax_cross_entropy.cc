// softmax_cross_entropy: loss = log(sum(exp(logits))) - logits[label], one loss for each row.
//
// The logarithm is taken of sums of exp(x - max), so no finite logits overflow.  The mean over rows
// is left to the graph: it differs with ignored rows and with gradient accumulation.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ridge/graph/axes.h"
#include "ridge/graph/grad_builder.h"
#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/cross_entropy.h"

namespace ridge {
namespace {

// logits: float [..., C].  labels: i64 or i32 [...].  losses: [...], f64 for f64, else f32.
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  RIDGE_RETURN_IF_ERROR(CheckLogitsAndLabels(call));
  return std::vector<TensorType>{{StatisticDType(call.inputs[0].dtype), call.inputs[1].dims}};
}

// Per logit: max, subtract, exp, add.
Cost EstimateCost(const OpCall& call) {
  return {.flops = 4 * call.inputs[0].elements(),
          .bytes_read = call.inputs[0].bytes() + call.inputs[1].bytes(),
          .bytes_written = call.outputs[0].bytes()};
}

// dlogits = (softmax(logits) - one_hot(labels)) * dlosses.
void Gradient(GradBuilder& g) {
  g.dx() = Op("softmax_cross_entropy_grad", {g.x(), g.x(1), g.dy()},
              PickAttrs(g.attrs(), {"ignore_index"}));
}

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const int64_t classes = call.inputs[0].dims.back();
  const double* labels = in[1];
  double* losses = out[0];
  for (int64_t row = 0; row < call.inputs[1].elements(); ++row) {
    const double* logits = in[0] + row * classes;
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
          "label is `ignore_index` has loss 0; any other label outside [0, C) gives NaN.",
      .input_names = {"logits", "labels"},
      .output_names = {"losses"},
      .attr_defaults = {{"ignore_index", -100}},
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
