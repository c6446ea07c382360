// round: y = the nearest integer; halves go to the even one.
// Its gradient is zero everywhere.
#include <cmath>

#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

double Element(std::span<const double> x, const AttrMap&) { return std::nearbyint(x[0]); }

}  // namespace

OpDef RoundDef() {
  return {
      .name = "round",
      .doc = "y = the nearest integer; halves go to the even one.",
      .input_names = {"x"},
      .output_names = {"y"},
      .infer_types = InferPointwise<Operands::kFloat>,
      .cost = PointwiseCost<1>,
      .gradient = ZeroGradient,
      .in_place = {{0, 0}},
      .recompute = Recompute::kCheap,
      .onnx = "Round@11",
      .elementwise = Element,
  };
}

}  // namespace ridge
