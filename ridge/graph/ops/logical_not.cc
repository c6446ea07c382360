// logical_not: y = not x.
#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

double Element(std::span<const double> x, const AttrMap&) { return x[0] == 0; }

}  // namespace

OpDef LogicalNotDef() {
  return {
      .name = "logical_not",
      .doc = "y = not x.",
      .input_names = {"x"},
      .output_names = {"y"},
      .infer_types = InferPointwise<Operands::kBool>,
      .cost = PointwiseCost<1>,
      .in_place = {{0, 0}},
      .recompute = Recompute::kCheap,
      .onnx = "Not@1",
      .elementwise = Element,
  };
}

}  // namespace ridge
