// sgd_update: one step of stochastic gradient descent, with momentum when a buffer is given.
//
// The same numbers as torch.optim.SGD with dampening 0.  PyTorch starts the buffer with the first
// gradient; a buffer of zeros gives the same: momentum * 0 + g.  The buffer may be kept in fewer
// bytes (moments.h); the parameter's step is computed before it is rounded.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "ridge/graph/axes.h"
#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/moments.h"
#include "ridge/graph/ops/shared/optimizer.h"

namespace ridge {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
std::vector<std::pair<int, int>> InPlace() { return {{0, 0}, {1, 3}, {2, 5}}; }

// param, grad: one float type.  momentum_buffer: the same, or bf16 or u8.  lr: f32[] or f64[].
// Outputs: as param, the buffer and, of u8, its absmax.
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  const TensorType& param = call.inputs[0];
  RIDGE_RETURN_IF_ERROR(CheckParamAndGrad(call, /*lr=*/2));
  RIDGE_RETURN_IF_ERROR(CheckApply(call, kSgdApply));
  RIDGE_RETURN_IF_ERROR(CheckNumber(call, "momentum", kInfinity));
  RIDGE_RETURN_IF_ERROR(CheckNumber(call, "weight_decay", kInfinity));
  RIDGE_RETURN_IF_ERROR(CheckFlag(call, "nesterov"));
  const double momentum = call.number("momentum");
  if (call.integer("nesterov") != 0 && momentum == 0) {
    return CallError(call, "nesterov is 1 but momentum is 0; nesterov needs momentum above 0");
  }
  if (!call.has_input(3)) {
    if (momentum == 0) return std::vector<TensorType>{param};
    return CallError(call, fmt::format("momentum is {} but momentum_buffer is not given; hint: "
                                       "give it a state that starts with zeros",
                                       momentum));
  }
  RIDGE_RETURN_IF_ERROR(CheckMoment(call, kSgdBuffer));
  RIDGE_RETURN_IF_ERROR(CheckRounding(call, kSgdBuffer.rng));
  std::vector<TensorType> outputs = {param, call.inputs[3]};
  if (FormOfMoment(call, 3) == MomentForm::kCoded) outputs.push_back(AbsmaxType(param));
  return outputs;
}

// Multiply and add: weight decay, momentum, nesterov, the step itself.
Cost EstimateCost(const OpCall& call) {
  int64_t flops = 2;
  if (call.number("weight_decay") != 0) flops += 2;
  if (call.has_input(3)) flops += 2;
  if (call.integer("nesterov") != 0) flops += 2;
  return OptimizerCost(call, flops);
}

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  if (KeepsValues(call, kSgdApply, InPlace(), in, out)) return;
  const double *param = in[0], *grad = in[1];
  const bool has_buffer = call.has_input(3);
  const double lr = in[2][0], momentum = call.number("momentum");
  const double weight_decay = call.number("weight_decay");
  const bool nesterov = call.integer("nesterov") != 0;
  const double scale = GradScale(call, kSgdApply, in);
  for (int64_t i = 0; i < call.inputs[0].elements(); ++i) {
    double g = scale * grad[i] + weight_decay * param[i];
    if (has_buffer) {
      const double b = momentum * LoadMoment(call, kSgdBuffer, in, i) + g;
      g = nesterov ? g + momentum * b : b;
      out[1][i] = b;
    }
    out[0][i] = param[i] - lr * g;
  }
  if (has_buffer) StoreMoment(call, kSgdBuffer, in, out);
}

// Every element by itself, unless it is rounded by its place or has a part in a block's scale.
Axes FindSharedAxes(const OpCall& call) {
  if (call.has_input(kSgdBuffer.rng) || call.has_input(kSgdBuffer.absmax_input)) return {};
  Axes axes;
  for (int d = 0; d < call.inputs[0].rank(); ++d)
    axes.push_back(Mapped(call, {d, d, Factor::kNone, d}, d));
  return axes;
}

}  // namespace

OpDef SgdUpdateDef() {
  return {
      .name = "sgd_update",
      .doc =
          "One step of SGD, as torch.optim.SGD: g = grad + weight_decay*param; with a buffer b' "
          "= momentum*b + g and g = b' (g + momentum*b' with nesterov); param' = param - lr*g. "
          "The buffer starts with zeros. lr is f32[] or f64[]. The buffer may be bf16, rounded at "
          "random by rng i64[2] = seed, step and `stream`, or u8, 8-bit dynamic codes with an "
          "absmax for each 256 elements. grad is first multiplied by grad_scale; "
          "where apply is false all of them stay as they are.",
      .input_names = {"param", "grad", "lr", "momentum_buffer?", "rng?", "momentum_buffer_absmax?",
                      "apply?", "grad_scale?"},
      .output_names = {"new_param", "new_momentum_buffer", "new_momentum_buffer_absmax"},
      .attr_defaults = {{"momentum", 0.0}, {"nesterov", 0}, {"weight_decay", 0.0}, {"stream", 0}},
      .cost_class = CostClass::kOptimizer,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .in_place = InPlace(),
      .recompute = Recompute::kNever,
      .shared_axes = FindSharedAxes,
      .reference = Reference,
  };
}

}  // namespace ridge
