#include "ridge/graph/ops/shared/draws.h"

#include <fmt/format.h>

#include <cmath>

#include "ridge/graph/ops/shared/checks.h"

namespace ridge {

Result<std::vector<TensorType>> InferDraws(const OpCall& call) {
  RIDGE_RETURN_IF_ERROR(
      CheckType(call, 0, "rng", {DType::kI64, {3}}, "seed, step and first_sample"));
  RIDGE_RETURN_IF_ERROR(CheckShape(call, "dims"));
  const std::optional<DType> dtype = ParseDType(call.text("dtype"));
  if (dtype && IsFloat(*dtype)) {
    return std::vector<TensorType>{{*dtype, call.integers("dims")}};
  }
  return CallError(
      call, fmt::format("dtype is \"{}\"; it must be f64, f32, f16 or bf16", call.text("dtype")));
}

Status CheckFinite(const OpCall& call, const char* name) {
  if (std::isfinite(call.number(name))) return Status();
  return CallError(call, fmt::format("{} is {}; it must be finite", name, call.number(name)));
}

Cost DrawsCost(const OpCall& call, int64_t flops) {
  const TensorType& y = call.outputs[0];
  return {.flops = flops * y.elements(),
          .bytes_read = call.inputs[0].bytes(),
          .bytes_written = y.bytes()};
}

AttrMap DrawAttrs() { return {{"dims", {}}, {"dtype", "f32"}, {"stream", 0}}; }

Axes DrawnAxes(const OpCall& call) {
  if (call.outputs[0].rank() == 0) return {};
  return {Mapped(call, {}, 0)};
}

}  // namespace ridge
