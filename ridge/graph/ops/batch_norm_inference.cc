// batch_norm_inference: y = scale * (x - mean) / sqrt(var + epsilon) + shift, with given
// statistics.
#include <cmath>

#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/epilogue.h"
#include "ridge/graph/ops/shared/norm.h"

namespace ridge {
namespace {

constexpr size_t kFirstExtra = 5;

// x: float [B,C,...].  scale, shift, mean, var: [C].  y: as x.
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  RIDGE_RETURN_IF_ERROR(CheckChannels(call));
  RIDGE_RETURN_IF_ERROR(CheckPerChannel(call, 1, "scale"));
  RIDGE_RETURN_IF_ERROR(CheckPerChannel(call, 2, "shift"));
  RIDGE_RETURN_IF_ERROR(CheckPerChannel(call, 3, "mean"));
  RIDGE_RETURN_IF_ERROR(CheckPerChannel(call, 4, "var"));
  RIDGE_RETURN_IF_ERROR(CheckEpilogue(call, kFirstExtra, call.inputs[0]));
  return std::vector<TensorType>{call.inputs[0]};
}

// Per element: one multiply and one add, with factors made once a channel.
Cost EstimateCost(const OpCall& call) {
  const TensorType& x = call.inputs[0];
  const auto extras = static_cast<int64_t>(call.inputs.size() - kFirstExtra);
  return {.flops = 2 * x.elements() + EpilogueFlops(call, x),
          .bytes_read = (1 + extras) * x.bytes() + 4 * call.inputs[1].bytes(),
          .bytes_written = x.bytes()};
}

// With r = 1 / sqrt(var + epsilon): dx = dy * scale * r;  dshift = sum(dy);
// dscale = sum(dy * (x - mean)) * r;  dmean = -scale * r * dshift;  dvar = -scale * r^2 / 2 *
// dscale.
void Gradient(GradBuilder& g) {
  if (RefusesEpilogueGradient(g, "batch_norm_inference")) return;
  const Value x = g.x(), scale = g.x(1), dy = g.dy();
  const Value r = Rsqrt(g.x(4) + g.number("epsilon"));
  const Value slope = scale * r;
  if (g.needs_dx(0)) g.dx() = dy * OverChannels(slope, x);
  if (g.needs_dx(2) || g.needs_dx(3)) {
    const Value dshift = SumOverAllButChannels(dy);
    g.dx(2) = dshift;
    if (g.needs_dx(3)) g.dx(3) = -(slope * dshift);
  }
  if (g.needs_dx(1) || g.needs_dx(4)) {
    const Value centered = x - OverChannels(g.x(3), x);
    const Value dscale = SumOverAllButChannels(dy * centered) * r;
    g.dx(1) = dscale;
    if (g.needs_dx(4)) {
      g.dx(4) = slope * r * dscale * -0.5;
    }
  }
}

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const AxisView view = ViewAxis(call.inputs[0].dims, 1);
  const double *x = in[0], *scale = in[1], *shift = in[2], *mean = in[3], *var = in[4];
  double* y = out[0];
  for (int64_t c = 0; c < view.extent; ++c) {
    const double slope = scale[c] / std::sqrt(var[c] + call.number("epsilon"));
    ForEachInChannel(view, c, [&](int64_t i) { y[i] = (x[i] - mean[c]) * slope + shift[c]; });
  }
  ApplyEpilogue(call, in, kFirstExtra, y);
}

}  // namespace

OpDef BatchNormInferenceDef() {
  return {
      .name = "batch_norm_inference",
      .doc =
          "Normalizes x [B,C,...] by given statistics: y = scale * (x - mean) / sqrt(var + "
          "epsilon) + shift. scale, shift, mean and var [C] are f32 (f64 for f64). "
          "The epilogue acts on y.",
      .input_names = {"x", "scale", "shift", "mean", "var", "extra...?"},
      .output_names = {"y"},
      .attr_defaults = {{"epsilon", 1e-5}, {"epilogue", ""}},
      .cost_class = CostClass::kNorm,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .gradient = Gradient,
      .in_place = {{0, 0}, {0, 5}},
      .recompute = Recompute::kCheap,
      .onnx = {"BatchNormalization", 9, 14},
      .axes = [](const OpCall& call) { return FirstAxisWithExtras(call, kFirstExtra); },
      .reference = Reference,
  };
}

}  // namespace ridge
