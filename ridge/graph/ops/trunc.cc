// trunc: y = x without its fraction: the nearest integer toward zero.
// Its gradient is zero everywhere.
#include <cmath>

#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

double Element(std::span<const double> x, const AttrMap&) { return std::trunc(x[0]); }

}  // namespace

OpDef TruncDef() {
  return {
      .name = "trunc",
      .doc = "y = x without its fraction: the nearest integer toward zero.",
      .input_names = {"x"},
      .output_names = {"y"},
      .infer_types = InferPointwise<Operands::kFloat>,
      .cost = PointwiseCost<1>,
      .gradient = ZeroGradient,
      .in_place = {{0, 0}},
      .recompute = Recompute::kCheap,
      .elementwise = Element,
  };
}

}  // namespace ridge
