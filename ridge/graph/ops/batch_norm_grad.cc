// batch_norm_grad: dx, dscale, dshift of y = batch_norm(x, scale, shift), from dy.
#include "ridge/graph/ops/shared/norm.h"
#include "ridge/graph/ops/shared/norm_grad_channel.h"

namespace ridge {
namespace {

constexpr size_t kShift = 5;

// dx: as x.  dscale, dshift: [C].
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  RIDGE_RETURN_IF_ERROR(CheckNormGradInputs(call, kShift));
  return std::vector<TensorType>{call.inputs[0], call.inputs[1], call.inputs[1]};
}

// Per element: add; subtract, multiply and add; multiply and add twice.  x and dy are read for the
// sums and again for dx.
Cost EstimateCost(const OpCall& call) {
  const TensorType &x = call.inputs[0], &scale = call.inputs[1];
  return {.flops = 8 * x.elements(),
          .bytes_read = 4 * x.bytes() + 3 * scale.bytes(),
          .bytes_written = x.bytes() + 2 * scale.bytes()};
}

// With relu=1, dy is 0 where scale * n + shift is not above 0, which is relu's mask.
// With n = (x - mean) / sqrt(var + epsilon), y = scale * n + shift:
// dshift = sum(dy); dscale = sum(dy * n);
// dx = scale / sqrt(var + epsilon) * (dy - dshift / N - n * dscale / N).
void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const AxisView view = ViewAxis(call.inputs[0].dims, 1);
  double *dx = out[0], *dscale = out[1], *dshift = out[2];
  const auto count = static_cast<double>(ElementsPerChannel(call.inputs[0].dims));
  for (int64_t c = 0; c < view.extent; ++c) {
    const NormGradChannel channel(call, in, kShift, c);
    dscale[c] = dshift[c] = 0;
    ForEachInChannel(view, c, [&](int64_t i) {
      dshift[c] += channel.dy(i);
      dscale[c] += channel.dscale(i);
    });
    ForEachInChannel(view, c,
                     [&](int64_t i) { dx[i] = channel.dx(i, dscale[c], dshift[c], count); });
  }
}

}  // namespace

OpDef BatchNormGradDef() {
  return {
      .name = "batch_norm_grad",
      .doc =
          "The gradients of x, scale and shift in batch_norm, from x, scale, its mean and var, "
          "and dy: with n = (x - mean) / sqrt(var + epsilon) over N elements a channel, dshift "
          "= sum(dy), dscale = sum(dy * n), dx = scale / sqrt(var + epsilon) * (dy - dshift/N - "
          "n * dscale/N). With relu=1 the gradient of relu(y): dy counts where scale * n + shift > "
          "0. With slices=S, x and dy are one of S equal slices of a batch: dx follows from all of "
          "them, and dscale and dshift are what this one adds.",
      .input_names = {"x", "scale", "mean", "var", "dy", "shift?"},
      .output_names = {"dx", "dscale", "dshift"},
      .attr_defaults = {{"epsilon", 1e-5}, {"relu", 0}, {"slices", 1}},
      .cost_class = CostClass::kNorm,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .in_place = {{0, 4}},
      .recompute = Recompute::kCheap,
      .slices_attr = "slices",
      .reference = Reference,
  };
}

}  // namespace ridge
