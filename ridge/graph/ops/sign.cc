// sign: y = 1 for x > 0, -1 for x < 0, 0 at 0, NaN for NaN.
// Its gradient is zero everywhere.
#include <cmath>

#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

double Element(std::span<const double> x, const AttrMap&) {
  if (std::isnan(x[0])) return x[0];
  return static_cast<double>((x[0] > 0) - (x[0] < 0));
}

}  // namespace

OpDef SignDef() {
  return {
      .name = "sign",
      .doc = "y = 1 for x > 0, -1 for x < 0, 0 at 0, NaN for NaN.",
      .input_names = {"x"},
      .output_names = {"y"},
      .infer_types = InferPointwise<Operands::kSigned>,
      .cost = PointwiseCost<1>,
      .gradient = ZeroGradient,
      .in_place = {{0, 0}},
      .recompute = Recompute::kCheap,
      .onnx = "Sign@13",
      .elementwise = Element,
  };
}

}  // namespace ridge
