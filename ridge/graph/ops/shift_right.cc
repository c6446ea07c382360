// shift_right: y = floor(a / 2^n).
#include <cmath>

#include "ridge/graph/ops/shared/bits.h"

namespace ridge {
namespace {

// No integer has more than 64 bits; a negative n counts as 0.
double Element(std::span<const double> v, const AttrMap&) {
  const int places = v[1] >= 64 ? 64 : v[1] > 0 ? static_cast<int>(v[1]) : 0;
  return std::floor(std::ldexp(v[0], -places));
}

}  // namespace

OpDef ShiftRightDef() {
  return {
      .name = "shift_right",
      .doc = "y = floor(a / 2^n), of integers. Inputs broadcast.",
      .input_names = {"a", "n"},
      .output_names = {"y"},
      .infer_types = InferBits,
      .cost = PointwiseCost<1>,
      .in_place = {{0, 0}, {0, 1}},
      .recompute = Recompute::kCheap,
      .onnx = "BitShift@11",
      .elementwise = Element,
  };
}

}  // namespace ridge
