#include "ridge/graph/ops/shared/optimizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "ridge/graph/ops/shared/checks.h"

namespace ridge {
namespace {

Status CheckScalar(const OpCall& call, size_t input, const char* name) {
  const TensorType& type = call.inputs[input];
  if (type.rank() == 0 && (type.dtype == DType::kF32 || type.dtype == DType::kF64)) return Status();
  return CallError(call,
                   fmt::format("{} is {}; it must be f32[] or f64[]", name, TypeToString(type)));
}

}  // namespace

Status CheckParamAndGrad(const OpCall& call, size_t lr) {
  RIDGE_RETURN_IF_ERROR(CheckFloat(call, 0, "param"));
  RIDGE_RETURN_IF_ERROR(CheckType(call, 1, "grad", call.inputs[0], "the type of param"));
  return CheckScalar(call, lr, "lr");
}

Status CheckApply(const OpCall& call, size_t apply) {
  if (call.has_input(apply)) {
    RIDGE_RETURN_IF_ERROR(
        CheckType(call, apply, "apply", {DType::kBool, {}}, "whether the update happens"));
  }
  return call.has_input(apply + 1) ? CheckScalar(call, apply + 1, "grad_scale") : Status();
}

double GradScale(const OpCall& call, size_t apply, std::span<const double* const> in) {
  return call.has_input(apply + 1) ? in[apply + 1][0] : 1;
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
