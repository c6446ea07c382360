// ceil: y = the smallest integer >= x.
// Its gradient is zero everywhere.
#include <cmath>

#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

double Element(std::span<const double> x, const AttrMap&) { return std::ceil(x[0]); }

}  // namespace

OpDef CeilDef() {
  return {
      .name = "ceil",
      .doc = "y = the smallest integer >= x.",
      .input_names = {"x"},
      .output_names = {"y"},
      .infer_types = InferPointwise<Operands::kFloat>,
      .cost = PointwiseCost<1>,
      .gradient = ZeroGradient,
      .in_place = {{0, 0}},
      .recompute = Recompute::kCheap,
      .onnx = "Ceil@13",
      .elementwise = Element,
  };
}

}  // namespace ridge
