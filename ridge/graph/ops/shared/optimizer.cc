#include "ridge/graph/ops/shared/optimizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "ridge/graph/ops/shared/checks.h"

namespace ridge {

Status CheckParamAndGrad(const OpCall& call, size_t lr) {
  RIDGE_RETURN_IF_ERROR(CheckFloat(call, 0, "param"));
  RIDGE_RETURN_IF_ERROR(CheckType(call, 1, "grad", call.inputs[0], "the type of param"));
  const TensorType& rate = call.inputs[lr];
  if (rate.rank() == 0 && (rate.dtype == DType::kF32 || rate.dtype == DType::kF64)) return Status();
  return CallError(call, fmt::format("lr is {}; it must be f32[] or f64[]", TypeToString(rate)));
}

Status CheckApply(const OpCall& call, size_t apply) {
  if (!call.has_input(apply)) return Status();
  return CheckType(call, apply, "apply", {DType::kBool, {}}, "whether the update happens");
}

bool KeepsValues(const OpCall& call, size_t apply, const std::vector<std::pair<int, int>>& kept,
                 std::span<const double* const> in, std::span<double* const> out) {
  if (!call.has_input(apply) || in[apply][0] != 0) return false;
  for (const auto& [output, input] : kept) {
    const auto o = static_cast<size_t>(output), i = static_cast<size_t>(input);
    if (o < call.outputs.size()) std::copy_n(in[i], call.outputs[o].elements(), out[o]);
  }
  return true;
}

Cost OptimizerCost(const OpCall& call, int64_t flops_per_element) {
  return StreamingCost(call, flops_per_element * call.inputs[0].elements());
}

}  // namespace ridge
