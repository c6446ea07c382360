// bit_cast: the same bits as another dtype of as many bytes.  No kernel runs.
#include <fmt/format.h>

#include "ridge/graph/axes.h"
#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  const TensorType& x = call.inputs[0];
  const std::optional<DType> to = ParseDType(call.text("to"));
  if (!to) {
    return CallError(
        call, fmt::format("to is \"{}\"; it must be one of {}", call.text("to"), AllDTypeNames()));
  }
  if (BytesPerElement(*to) != BytesPerElement(x.dtype)) {
    return CallError(call, fmt::format("x is {}, {} bytes an element, and {} has {}; they must "
                                       "have as many",
                                       TypeToString(x), BytesPerElement(x.dtype), DTypeName(*to),
                                       BytesPerElement(*to)));
  }
  return std::vector<TensorType>{{*to, x.dims}};
}

// Through doubles 64-bit integers keep 53 bits; the view that a plan makes keeps all.
void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const DType from = call.inputs[0].dtype, to = call.outputs[0].dtype;
  for (int64_t i = 0; i < call.inputs[0].elements(); ++i) {
    uint64_t bits = 0;
    StoreFromDouble(from, &bits, 0, in[0][i]);
    out[0][i] = LoadAsDouble(to, &bits, 0);
  }
}

}  // namespace

OpDef BitCastDef() {
  return {
      .name = "bit_cast",
      .doc = "y = the bits of x, read as dtype `to` (\"i32\") of as many bytes. No kernel runs.",
      .input_names = {"x"},
      .output_names = {"y"},
      .attr_defaults = {{"to", ""}},
      .required_attrs = {"to"},
      .cost_class = CostClass::kMove,
      .infer_types = InferTypes,
      .alias_input = 0,
      .recompute = Recompute::kCheap,
      .onnx = {"BitCast", 26, 26, 26, 26},
      .shared_axes = [](const OpCall& call) { return AxesBelow(call, call.inputs[0].rank()); },
      .reference = Reference,
  };
}

}  // namespace ridge
