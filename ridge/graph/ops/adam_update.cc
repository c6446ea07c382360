// adam_update: one step of Adam (Kingma and Ba, 2015) or AdamW (Loshchilov and Hutter, 2019).
//
// The same numbers as torch.optim.Adam and AdamW: both moments are corrected for their start at
// zero, and epsilon is added outside the square root.  The moments may be kept in fewer bytes
// (moments.h); the parameter's step is computed from those of this update before they are rounded.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "ridge/graph/axes.h"
#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/moments.h"
#include "ridge/graph/ops/shared/optimizer.h"

namespace ridge {
namespace {

std::vector<std::pair<int, int>> InPlace() { return {{0, 0}, {1, 2}, {2, 3}, {3, 7}, {4, 8}}; }

Status CheckMoments(const OpCall& call) {
  RIDGE_RETURN_IF_ERROR(CheckMoment(call, kAdamM));
  RIDGE_RETURN_IF_ERROR(CheckMoment(call, kAdamV));
  RIDGE_RETURN_IF_ERROR(CheckRounding(call, kAdamM.rng));
  if (call.inputs[2].dtype == call.inputs[3].dtype) return Status();
  return CallError(call, fmt::format("m is {} and v is {}; they must have one type",
                                     TypeToString(call.inputs[2]), TypeToString(call.inputs[3])));
}

// param, grad: one float type.  m, v: the same, or bf16 or u8.  lr: f32[] or f64[].  step: i64[].
// Outputs: as param, m, v and, of u8, their absmax.
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  const TensorType& param = call.inputs[0];
  RIDGE_RETURN_IF_ERROR(CheckParamAndGrad(call, /*lr=*/4));
  RIDGE_RETURN_IF_ERROR(CheckMoments(call));
  RIDGE_RETURN_IF_ERROR(CheckApply(call, kAdamApply));
  RIDGE_RETURN_IF_ERROR(CheckType(call, 5, "step", {DType::kI64, {}}, "the number of updates"));
  RIDGE_RETURN_IF_ERROR(CheckNumber(call, "beta1", 1));
  RIDGE_RETURN_IF_ERROR(CheckNumber(call, "beta2", 1));
  const double infinity = std::numeric_limits<double>::infinity();
  RIDGE_RETURN_IF_ERROR(CheckNumber(call, "epsilon", infinity));
  RIDGE_RETURN_IF_ERROR(CheckNumber(call, "weight_decay", infinity));
  RIDGE_RETURN_IF_ERROR(CheckFlag(call, "decoupled"));
  std::vector<TensorType> outputs = {param, call.inputs[2], call.inputs[3]};
  if (FormOfMoment(call, 2) == MomentForm::kCoded) outputs.resize(5, AbsmaxType(param));
  return outputs;
}

// m: multiply, multiply, add.  v: three multiplies, add.  param: square root, scale, add epsilon,
// divide, multiply, subtract.  Weight decay: multiply and add.
Cost EstimateCost(const OpCall& call) {
  return OptimizerCost(call, 13 + (call.number("weight_decay") != 0 ? 2 : 0));
}

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  if (KeepsValues(call, kAdamApply, InPlace(), in, out)) return;
  const double *param = in[0], *grad = in[1];
  const double lr = in[4][0], step = in[5][0];
  const double beta1 = call.number("beta1"), beta2 = call.number("beta2");
  const double epsilon = call.number("epsilon"), weight_decay = call.number("weight_decay");
  const bool decoupled = call.integer("decoupled") != 0;
  const double scale = GradScale(call, kAdamApply, in);
  const double correction1 = 1 - std::pow(beta1, step);
  const double correction2 = std::sqrt(1 - std::pow(beta2, step));
  for (int64_t i = 0; i < call.inputs[0].elements(); ++i) {
    const double scaled = scale * grad[i];
    const double g = decoupled ? scaled : scaled + weight_decay * param[i];
    const double decayed = decoupled ? param[i] * (1 - lr * weight_decay) : param[i];
    const double new_m = beta1 * LoadMoment(call, kAdamM, in, i) + (1 - beta1) * g;
    const double new_v = beta2 * LoadMoment(call, kAdamV, in, i) + (1 - beta2) * g * g;
    out[0][i] = decayed - lr / correction1 * new_m / (std::sqrt(new_v) / correction2 + epsilon);
    out[1][i] = new_m;
    out[2][i] = new_v;
  }
  StoreMoment(call, kAdamM, in, out);
  StoreMoment(call, kAdamV, in, out);
}

// Every element by itself, unless it is rounded by its place or has a part in a block's scale.
Axes FindSharedAxes(const OpCall& call) {
  if (call.has_input(kAdamM.rng) || call.has_input(kAdamM.absmax_input)) return {};
  Axes axes;
  for (int d = 0; d < call.inputs[0].rank(); ++d) axes.push_back(Mapped(call, {d, d, d, d}, d));
  return axes;
}

}  // namespace

OpDef AdamUpdateDef() {
  return {
      .name = "adam_update",
      .doc =
          "One step of Adam, as torch.optim.Adam: g = grad + weight_decay*param; m' = beta1*m + "
          "(1-beta1)*g; v' = beta2*v + (1-beta2)*g*g; param' = param - lr / (1-beta1^step) * m' "
          "/ (sqrt(v') / sqrt(1-beta2^step) + epsilon). With decoupled=1 it is AdamW: g = grad "
          "and param is first scaled by 1 - lr*weight_decay. step is 1 at the first update; m "
          "and v start with zeros. lr is f32[] or f64[]. m and v may be bf16, rounded at random by "
          "rng i64[2] = seed, step and `stream`, or u8, 8-bit dynamic codes with an absmax for "
          "each 256 elements. grad is first multiplied by grad_scale; where "
          "apply is false all of them stay as they are.",
      .input_names = {"param", "grad", "m", "v", "lr", "step", "rng?", "m_absmax?", "v_absmax?",
                      "apply?", "grad_scale?"},
      .output_names = {"new_param", "new_m", "new_v", "new_m_absmax", "new_v_absmax"},
      .attr_defaults = {{"beta1", 0.9},
                        {"beta2", 0.999},
                        {"epsilon", 1e-8},
                        {"weight_decay", 0.0},
                        {"decoupled", 0},
                        {"stream", 0}},
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
