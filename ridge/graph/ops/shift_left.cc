// shift_left: y = a 2^n in the low bits of the type: what is shifted out is lost.
#include <fmt/format.h>

#include <cmath>

#include "ridge/graph/ops/shared/bits.h"

namespace ridge {
namespace {

Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  RIDGE_ASSIGN_OR_RETURN(std::vector<TensorType> types, InferBits(call));
  const DType dtype = types[0].dtype;
  if (IsSigned(dtype) || call.integer("bits") != IntegerBits(dtype)) {
    return CallError(call,
                     fmt::format("inputs are {} and bits is {}; they must be integers without "
                                 "sign of that many bits",
                                 DTypeName(dtype), call.integer("bits")));
  }
  return types;
}

// A product with a power of two and a remainder are exact.
double Element(std::span<const double> v, const AttrMap& attrs) {
  const auto bits = static_cast<int>(attrs.integer("bits"));
  if (v[1] >= bits) return 0;
  return std::fmod(std::ldexp(v[0], static_cast<int>(v[1])), std::ldexp(1.0, bits));
}

}  // namespace

OpDef ShiftLeftDef() {
  return {
      .name = "shift_left",
      .doc =
          "y = the bits of a moved up by n places, of integers without sign with `bits` bits. "
          "Inputs broadcast.",
      .input_names = {"a", "n"},
      .output_names = {"y"},
      .attr_defaults = {{"bits", 0}},
      .required_attrs = {"bits"},
      .infer_types = InferTypes,
      .cost = PointwiseCost<1>,
      .in_place = {{0, 0}, {0, 1}},
      .recompute = Recompute::kCheap,
      .onnx = {"BitShift", 11, 0, 0, 11},
      .elementwise = Element,
  };
}

}  // namespace ridge
