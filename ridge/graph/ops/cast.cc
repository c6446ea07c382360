// cast: y = x in another dtype.
//
// Floats round to nearest even; to integers they truncate toward zero and saturate, NaN becomes 0;
// bool is x != 0.  The rounding is that of storing the result, so Element mostly passes x on.
// saturate=0: integers keep their low bits (200 becomes -56 in i8), floats of 8 bits become
// infinity or NaN where they are too small for x.  round says where f8e8m0, a power of two, lies.
#include <fmt/format.h>

#include <cmath>

#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  const std::optional<DType> to = ParseDType(call.text("to"));
  if (!to) {
    return CallError(
        call, fmt::format("to is \"{}\"; it must be one of {}", call.text("to"), AllDTypeNames()));
  }
  RIDGE_RETURN_IF_ERROR(CheckFlag(call, "saturate"));
  const std::string& round = call.text("round");
  if (round != "nearest" && round != "up" && round != "down") {
    return CallError(call,
                     fmt::format("round is \"{}\"; it must be one of nearest, up, down", round));
  }
  return std::vector<TensorType>{{*to, call.inputs[0].dims}};
}

// The power of two beside a positive x: above for "up", below for "down".
double PowerOfTwo(double x, const std::string& round) {
  if (!(x > 0) || std::isinf(x) || round == "nearest") return x;
  int exponent = 0;
  const double fraction = std::frexp(x, &exponent);
  return std::ldexp(1.0, round == "down" || fraction == 0.5 ? exponent - 1 : exponent);
}

double Element(std::span<const double> x, const AttrMap& attrs) {
  const bool saturate = attrs.integer("saturate") != 0;
  const DType to = *ParseDType(attrs.text("to"));
  if (IsFloat(to)) return x[0];
  const double value = to == DType::kF8E8M0 ? PowerOfTwo(x[0], attrs.text("round")) : x[0];
  return CastValue(to, value, saturate);
}

// dx = dy cast back; nothing flows to or from integers.
void Gradient(GradBuilder& g) {
  const DType dtype = g.x().dtype();
  if (IsFloat(dtype)) g.dx() = Cast(g.dy(), dtype);
}

}  // namespace

OpDef CastDef() {
  return {
      .name = "cast",
      .doc =
          "y = x as dtype `to` (\"f32\"). To integers: toward zero, saturating; to bool: x != 0. "
          "saturate=0: integers keep their low bits, small floats become infinity or NaN. round: "
          "nearest, up or down, for f8e8m0.",
      .input_names = {"x"},
      .output_names = {"y"},
      .attr_defaults = {{"to", ""}, {"saturate", 1}, {"round", "nearest"}},
      .required_attrs = {"to"},
      .infer_types = InferTypes,
      .cost = PointwiseCost<1>,
      .gradient = Gradient,
      .recompute = Recompute::kCheap,
      .onnx = {"Cast", 9, 13, 9, 9},
      .linear = Linear::kJointly,
      .elementwise = Element,
  };
}

}  // namespace ridge
