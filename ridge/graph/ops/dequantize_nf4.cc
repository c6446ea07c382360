// dequantize_nf4: the floats of a tensor that is kept in 4 bits a number (core/nf4.h).
#include <fmt/format.h>

#include "ridge/core/nf4.h"
#include "ridge/graph/ops/shared/checks.h"

namespace ridge {
namespace {

Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  RIDGE_RETURN_IF_ERROR(CheckShape(call, "dims"));
  const std::optional<DType> to = ParseDType(call.text("to"));
  if (!to || !IsFloat(*to)) {
    return CallError(call, fmt::format("to is \"{}\"; it must be a float: f64, f32, f16 or bf16",
                                       call.text("to")));
  }
  const TensorType y{*to, call.integers("dims")};
  RIDGE_RETURN_IF_ERROR(CheckType(call, 0, "codes", {DType::kU8, {Nf4CodeBytes(y.elements())}},
                                  "a byte for each two numbers of y"));
  RIDGE_RETURN_IF_ERROR(CheckFloat(call, 1, "scales"));
  const TensorType scales{call.inputs[1].dtype, {Nf4ScaleCount(y.elements())}};
  RIDGE_RETURN_IF_ERROR(CheckType(call, 1, "scales", scales, "a number for each 64 of y"));
  return std::vector<TensorType>{y};
}

Cost EstimateCost(const OpCall& call) { return StreamingCost(call, call.outputs[0].elements()); }

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  for (int64_t i = 0; i < call.outputs[0].elements(); ++i) {
    const auto pair = static_cast<int>(in[0][i / 2]);
    const int code = i % 2 == 0 ? pair >> 4 : pair & 15;
    out[0][i] = double{Nf4Values()[static_cast<size_t>(code)]} * in[1][i / kNf4Block];
  }
}

}  // namespace

OpDef DequantizeNf4Def() {
  return {
      .name = "dequantize_nf4",
      .doc =
          "y = value of code * scale of its block of 64, of shape `dims` and the float `to`. "
          "codes: u8, two of y's 4-bit codes a byte, the first in the high half, row-major. "
          "scales: any float, kept as bf16. The values are NF4's (Dettmers et al. 2023).",
      .input_names = {"codes", "scales"},
      .output_names = {"y"},
      .attr_defaults = {{"dims", {}}, {"to", "f32"}},
      .required_attrs = {"dims"},
      .cost_class = CostClass::kMove,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .recompute = Recompute::kCheap,
      .dims_attr = "dims",
      .reference = Reference,
  };
}

}  // namespace ridge
