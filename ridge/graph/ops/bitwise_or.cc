// bitwise_or: y = a or b, bit by bit, as two's complement.
#include "ridge/graph/ops/shared/bits.h"

namespace ridge {
namespace {

double Element(std::span<const double> v, const AttrMap&) {
  return NumberOfBits(BitsOf(v[0]) | BitsOf(v[1]), v[0] < 0 || v[1] < 0);
}

}  // namespace

OpDef BitwiseOrDef() {
  return {
      .name = "bitwise_or",
      .doc = "y = a or b, bit by bit, of integers. Inputs broadcast.",
      .input_names = {"a", "b"},
      .output_names = {"y"},
      .infer_types = InferBits,
      .cost = PointwiseCost<1>,
      .in_place = {{0, 0}, {0, 1}},
      .recompute = Recompute::kCheap,
      .onnx = "BitwiseOr@18",
      .elementwise = Element,
  };
}

}  // namespace ridge
