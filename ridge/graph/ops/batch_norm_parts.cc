// batch_norm and its gradient in the parts of a batch that runs in slices:
//
//   mean, var = batch_norm_moments(x)                         of a slice
//   mean, var = batch_norm_combine(gather_slices(mean, var))  of the batch
//   y = batch_norm_inference(x, scale, shift, mean, var)
//
//   dscale, dshift = batch_norm_grad_sums(x, scale, mean, var, dy)  what a slice adds to them
//   dx = batch_norm_grad_input(x, scale, mean, var, dy, gather_slices(dscale, dshift))
//
// Slices have equally many samples.
#include <fmt/format.h>

#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/norm.h"
#include "ridge/graph/ops/shared/norm_grad_channel.h"

namespace ridge {
namespace {

// --- moments -----------------------------------------------------------------------------------

// x: float [B,C,...].  mean, var: [C].
Result<std::vector<TensorType>> InferMoments(const OpCall& call) {
  RIDGE_RETURN_IF_ERROR(CheckChannelDims(call));
  const TensorType& x = call.inputs[0];
  const TensorType moment = {StatisticDType(x.dtype), {x.dims[1]}};
  return std::vector<TensorType>{moment, moment};
}

// Per element: add; subtract, square and add.
Cost MomentsCost(const OpCall& call) {
  const TensorType& x = call.inputs[0];
  return StreamingCost(call, 4 * x.elements());
}

void MomentsReference(const OpCall& call, std::span<const double* const> in,
                      std::span<double* const> out) {
  const AxisView view = ViewAxis(call.inputs[0].dims, 1);
  for (int64_t c = 0; c < view.extent; ++c) {
    const Moments moments = ChannelMoments(in[0], view, c);
    out[0][c] = moments.mean;
    out[1][c] = moments.variance;
  }
}

// --- combine -----------------------------------------------------------------------------------

// parts: float [S,2,C].  mean, var: [C].
Result<std::vector<TensorType>> InferCombine(const OpCall& call) {
  RIDGE_RETURN_IF_ERROR(CheckFloat(call, 0, "parts"));
  const TensorType& parts = call.inputs[0];
  if (parts.rank() != 3 || parts.dims[0] < 1 || parts.dims[1] != 2) {
    return CallError(
        call, fmt::format("parts is {}; it must be [S,2,C], S at least 1", TypeToString(parts)));
  }
  const TensorType moment = {parts.dtype, {parts.dims[2]}};
  return std::vector<TensorType>{moment, moment};
}

// The mean of the means, and of the variances with the squared distances of the means.
void CombineReference(const OpCall& call, std::span<const double* const> in,
                      std::span<double* const> out) {
  const Dims& dims = call.inputs[0].dims;
  const int64_t slices = dims[0], channels = dims[2];
  const auto part = [&](int64_t s, int64_t k, int64_t c) {
    return in[0][(s * 2 + k) * channels + c];
  };
  for (int64_t c = 0; c < channels; ++c) {
    double mean = 0, var = 0;
    for (int64_t s = 0; s < slices; ++s) mean += part(s, 0, c);
    mean /= static_cast<double>(slices);
    for (int64_t s = 0; s < slices; ++s) {
      const double distance = part(s, 0, c) - mean;
      var += part(s, 1, c) + distance * distance;
    }
    out[0][c] = mean;
    out[1][c] = var / static_cast<double>(slices);
  }
}

// --- gradient ----------------------------------------------------------------------------------

constexpr size_t kShiftOfSums = 5;

Result<std::vector<TensorType>> InferGradSums(const OpCall& call) {
  RIDGE_RETURN_IF_ERROR(CheckNormGradInputs(call, kShiftOfSums));
  return std::vector<TensorType>{call.inputs[1], call.inputs[1]};
}

// Per element: add; subtract, multiply and add.
Cost GradSumsCost(const OpCall& call) { return StreamingCost(call, 4 * call.inputs[0].elements()); }

// dshift = sum(dy); dscale = sum(dy * n).
void GradSumsReference(const OpCall& call, std::span<const double* const> in,
                       std::span<double* const> out) {
  const AxisView view = ViewAxis(call.inputs[0].dims, 1);
  for (int64_t c = 0; c < view.extent; ++c) {
    const NormGradChannel channel(call, in, kShiftOfSums, c);
    out[0][c] = out[1][c] = 0;
    ForEachInChannel(view, c, [&](int64_t i) {
      out[0][c] += channel.dscale(i);
      out[1][c] += channel.dy(i);
    });
  }
}

constexpr size_t kSums = 5, kShiftOfInput = 6;

// sums: [S,2,C].  dx: as x.
Result<std::vector<TensorType>> InferGradInput(const OpCall& call) {
  RIDGE_RETURN_IF_ERROR(CheckNormGradInputs(call, kShiftOfInput));
  const TensorType& sums = call.inputs[kSums];
  const TensorType& scale = call.inputs[1];
  if (sums.rank() != 3 || sums.dtype != scale.dtype || sums.dims[0] < 1 || sums.dims[1] != 2 ||
      sums.dims[2] != scale.dims[0]) {
    return CallError(call, fmt::format("sums is {}; it must be {}[S,2,{}], dscale and dshift of "
                                       "each slice",
                                       TypeToString(sums), DTypeName(scale.dtype), scale.dims[0]));
  }
  return std::vector<TensorType>{call.inputs[0]};
}

// Per element: multiply and add twice.
Cost GradInputCost(const OpCall& call) {
  return StreamingCost(call, 4 * call.inputs[0].elements());
}

// dx = scale / sqrt(var + epsilon) * (dy - dshift / N - n * dscale / N), N over all slices.
void GradInputReference(const OpCall& call, std::span<const double* const> in,
                        std::span<double* const> out) {
  const AxisView view = ViewAxis(call.inputs[0].dims, 1);
  const int64_t slices = call.inputs[kSums].dims[0];
  const auto count = static_cast<double>(slices * ElementsPerChannel(call.inputs[0].dims));
  for (int64_t c = 0; c < view.extent; ++c) {
    const NormGradChannel channel(call, in, kShiftOfInput, c);
    double dscale = 0, dshift = 0;
    for (int64_t s = 0; s < slices; ++s) {
      dscale += in[kSums][s * 2 * view.extent + c];
      dshift += in[kSums][(s * 2 + 1) * view.extent + c];
    }
    ForEachInChannel(view, c, [&](int64_t i) { out[0][i] = channel.dx(i, dscale, dshift, count); });
  }
}

OpDef MomentsDef() {
  return {
      .name = "batch_norm_moments",
      .doc =
          "Mean and biased variance [C] of each channel of x [B,C,...]; 0 for an empty batch. "
          "They are f32 (f64 for f64).",
      .input_names = {"x"},
      .output_names = {"mean", "var"},
      .cost_class = CostClass::kNorm,
      .infer_types = InferMoments,
      .cost = MomentsCost,
      .recompute = Recompute::kCheap,
      .reference = MomentsReference,
  };
}

OpDef CombineDef() {
  return {
      .name = "batch_norm_combine",
      .doc =
          "Mean and biased variance [C] of a batch, from those of its S equal slices, parts "
          "[S,2,C]: the mean of the means, and the mean of the variances plus the mean squared "
          "distance of the means.",
      .input_names = {"parts"},
      .output_names = {"mean", "var"},
      .cost_class = CostClass::kReduce,
      .infer_types = InferCombine,
      .recompute = Recompute::kCheap,
      .reference = CombineReference,
  };
}

OpDef GradSumsDef() {
  return {
      .name = "batch_norm_grad_sums",
      .doc =
          "What a slice adds to the gradients of scale and shift in batch_norm, from x, scale, "
          "the batch's mean and var, and dy: dscale = sum(dy * (x - mean) / sqrt(var + "
          "epsilon)), dshift = sum(dy). With relu=1 the gradient of relu(y): dy counts where y "
          "> 0.",
      .input_names = {"x", "scale", "mean", "var", "dy", "shift?"},
      .output_names = {"dscale", "dshift"},
      .attr_defaults = {{"epsilon", 1e-5}, {"relu", 0}},
      .cost_class = CostClass::kNorm,
      .infer_types = InferGradSums,
      .cost = GradSumsCost,
      .recompute = Recompute::kCheap,
      .reference = GradSumsReference,
  };
}

OpDef GradInputDef() {
  return {
      .name = "batch_norm_grad_input",
      .doc =
          "The gradient of x in batch_norm over S equal slices, of which x and dy are one: "
          "with sums [S,2,C], dscale and dshift of each slice, and n = (x - mean) / sqrt(var + "
          "epsilon) over N elements a channel of all slices, dx = scale / sqrt(var + epsilon) "
          "* (dy - dshift/N - n * dscale/N). relu as in batch_norm_grad_sums.",
      .input_names = {"x", "scale", "mean", "var", "dy", "sums", "shift?"},
      .output_names = {"dx"},
      .attr_defaults = {{"epsilon", 1e-5}, {"relu", 0}},
      .cost_class = CostClass::kNorm,
      .infer_types = InferGradInput,
      .cost = GradInputCost,
      .in_place = {{0, 4}},
      .recompute = Recompute::kCheap,
      .reference = GradInputReference,
  };
}

}  // namespace

std::vector<OpDef> BatchNormPartOps() {
  return {MomentsDef(), CombineDef(), GradSumsDef(), GradInputDef()};
}

}  // namespace ridge
