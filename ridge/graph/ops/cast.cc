// cast: y = x in another dtype.
//
// Floats round to nearest even; to integers they truncate toward zero and saturate, NaN becomes 0;
// bool is x != 0.  The rounding is that of storing the result, so Element only passes x on.
#include <fmt/format.h>

#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  const std::optional<DType> to = ParseDType(call.text("to"));
  if (!to) {
    return CallError(call, fmt::format("to is \"{}\"; it must be one of f64, f32, f16, bf16, i64, "
                                       "i32, u8, i8, bool",
                                       call.text("to")));
  }
  return std::vector<TensorType>{{*to, call.inputs[0].dims}};
}

double Element(std::span<const double> x, const AttrMap&) { return x[0]; }

// dx = dy cast back; nothing flows to or from integers.
void Gradient(GradBuilder& g) {
  const DType dtype = g.b().type(g.input(0)).dtype;
  if (IsFloat(dtype)) g.set_input_grad(0, g.b().Cast(g.output_grad(0), dtype));
}

}  // namespace

OpDef CastDef() {
  return {
      .name = "cast",
      .doc =
          "y = x as dtype `to` (\"f32\"). To integers: toward zero, saturating; to bool: x != 0.",
      .input_names = {"x"},
      .output_names = {"y"},
      .attr_defaults = {{"to", std::string()}},
      .required_attrs = {"to"},
      .infer_types = InferTypes,
      .cost = PointwiseCost<1>,
      .gradient = Gradient,
      .recompute = Recompute::kCheap,
      .onnx = "Cast@13",
      .elementwise = Element,
  };
}

}  // namespace ridge
