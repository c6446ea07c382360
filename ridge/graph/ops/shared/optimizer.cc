#include "ridge/graph/ops/shared/optimizer.h"

#include <fmt/format.h>

#include "ridge/graph/ops/shared/checks.h"

namespace ridge {

Status CheckParamAndGrad(const OpCall& call, size_t lr) {
  RIDGE_RETURN_IF_ERROR(CheckFloat(call, 0, "param"));
  RIDGE_RETURN_IF_ERROR(CheckType(call, 1, "grad", call.inputs[0], "the type of param"));
  const TensorType& rate = call.inputs[lr];
  if (rate.rank() == 0 && (rate.dtype == DType::kF32 || rate.dtype == DType::kF64)) return Status();
  return CallError(call, fmt::format("lr is {}; it must be f32[] or f64[]", TypeToString(rate)));
}

Cost OptimizerCost(const OpCall& call, int64_t flops_per_element) {
  return StreamingCost(call, flops_per_element * call.inputs[0].elements());
}

}  // namespace ridge
