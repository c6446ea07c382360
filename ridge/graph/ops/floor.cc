// floor: y = the largest integer <= x.
// Its gradient is zero everywhere.
#include <cmath>

#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

double Element(std::span<const double> x, const AttrMap&) { return std::floor(x[0]); }

}  // namespace

OpDef FloorDef() {
  return {
      .name = "floor",
      .doc = "y = the largest integer <= x.",
      .input_names = {"x"},
      .output_names = {"y"},
      .infer_types = InferPointwise<Operands::kFloat>,
      .cost = PointwiseCost<1>,
      .gradient = ZeroGradient,
      .in_place = {{0, 0}},
      .recompute = Recompute::kCheap,
      .onnx = "Floor@13",
      .elementwise = Element,
  };
}

}  // namespace ridge
