// batch_norm: y = scale * (x - mean) / sqrt(var + epsilon) + shift, with the batch's own
// statistics.
//
// The training form (Ioffe and Szegedy, 2015).  Mean and variance are outputs, because the gradient
// reads them and the model keeps running averages of them; those averages are updates of the graph.
#include <cmath>

#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/epilogue.h"
#include "ridge/graph/ops/shared/norm.h"

namespace ridge {
namespace {

constexpr size_t kFirstExtra = 3;

// x: float [B,C,...].  scale, shift: [C].  y and what the epilogue adds: as x.  mean, var: [C].
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  RIDGE_RETURN_IF_ERROR(CheckChannels(call));
  RIDGE_RETURN_IF_ERROR(CheckPerChannel(call, 1, "scale"));
  RIDGE_RETURN_IF_ERROR(CheckPerChannel(call, 2, "shift"));
  RIDGE_RETURN_IF_ERROR(CheckEpilogue(call, kFirstExtra, call.inputs[0]));
  return std::vector<TensorType>{call.inputs[0], call.inputs[1], call.inputs[1]};
}

// Per element: add; subtract, square and add; multiply and add.  x is read for the statistics and
// again for y.
Cost EstimateCost(const OpCall& call) {
  const TensorType &x = call.inputs[0], &scale = call.inputs[1];
  const auto extras = static_cast<int64_t>(call.inputs.size() - kFirstExtra);
  return {.flops = 6 * x.elements() + EpilogueFlops(call, x),
          .bytes_read = (2 + extras) * x.bytes() + 2 * scale.bytes(),
          .bytes_written = x.bytes() + 2 * scale.bytes()};
}

// What reaches x through mean and var: dmean / N + dvar * 2 (x - mean) / N.
Value StatisticsGrad(GradBuilder& g) {
  const Value x = g.x();
  const double inverse_count = 1 / static_cast<double>(ElementsPerChannel(x.dims()));
  const Value dmean = g.dy(1) * inverse_count;
  const Value dvar = g.dy(2) * (2 * inverse_count);
  const Value centered = x - OverChannels(g.y(1), x);
  const Value by_var = OverChannels(dvar, x) * centered;
  return OverChannels(dmean, x) + by_var;
}

// A loss of the statistics has no gradient where they are those of several slices.
bool RefusesStatisticsGradient(GradBuilder& g) {
  if (g.integer("slices") == 1) return false;
  g.b().Fail(Status(ErrorCode::kUnsupported,
                    "batch_norm: no gradient through the mean and var of a batch in slices. hint: "
                    "one device, --sums running"));
  return true;
}

// dx, dscale, dshift = batch_norm_grad(x, scale, mean, var, dy).
void Gradient(GradBuilder& g) {
  if (RefusesEpilogueGradient(g, "batch_norm")) return;
  const Value x = g.x();
  const std::vector<Value> grads =
      OpOutputs("batch_norm_grad", {x, g.x(1), g.y(1), g.y(2), g.dy()},
                {{"epsilon", g.number("epsilon")}, {"slices", g.integer("slices")}});
  const bool statistics = g.needs_dx(0) && (g.has_dy(1) || g.has_dy(2));
  if (statistics && RefusesStatisticsGradient(g)) return;
  g.dx() = statistics ? grads[0] + StatisticsGrad(g) : grads[0];
  g.dx(1) = grads[1];
  g.dx(2) = grads[2];
}

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const AxisView view = ViewAxis(call.inputs[0].dims, 1);
  const double *x = in[0], *scale = in[1], *shift = in[2];
  double *y = out[0], *mean = out[1], *var = out[2];
  for (int64_t c = 0; c < view.extent; ++c) {
    const Moments moments = ChannelMoments(x, view, c);
    mean[c] = moments.mean;
    var[c] = moments.variance;
    const double factor = scale[c] / std::sqrt(moments.variance + call.number("epsilon"));
    ForEachInChannel(view, c, [&](int64_t i) { y[i] = (x[i] - moments.mean) * factor + shift[c]; });
  }
  ApplyEpilogue(call, in, kFirstExtra, y);
}

}  // namespace

OpDef BatchNormDef() {
  return {
      .name = "batch_norm",
      .doc =
          "Normalizes x [B,C,...] by the mean and the biased variance of each channel over all "
          "other dimensions: y = scale * (x - mean) / sqrt(var + epsilon) + shift. Returns y, "
          "mean [C] and var [C] (0 for an empty batch). scale, shift [C] and the statistics are "
          "f32 (f64 for f64). The epilogue acts on y. With slices=S, x is one of S equal slices of "
          "a batch, and the statistics are those of the batch.",
      .input_names = {"x", "scale", "shift", "extra...?"},
      .output_names = {"y", "mean", "var"},
      .attr_defaults = {{"epsilon", 1e-5}, {"epilogue", ""}, {"slices", 1}},
      .cost_class = CostClass::kNorm,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .gradient = Gradient,
      .in_place = {{0, 0}, {0, 3}},
      .recompute = Recompute::kCheap,
      .onnx = {"BatchNormalization", 9, 14},
      .slices_attr = "slices",
      .reference = Reference,
  };
}

}  // namespace ridge
