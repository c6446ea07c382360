// logical_and: y = a and b, of bools.
#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

double Element(std::span<const double> v, const AttrMap&) { return v[0] != 0 && v[1] != 0; }

}  // namespace

OpDef LogicalAndDef() {
  return {
      .name = "logical_and",
      .doc = "y = a and b, of bools. Inputs broadcast.",
      .input_names = {"a", "b"},
      .output_names = {"y"},
      .infer_types = InferPointwise<Operands::kBool>,
      .cost = PointwiseCost<1>,
      .in_place = {{0, 0}, {0, 1}},
      .recompute = Recompute::kCheap,
      .onnx = "And@7",
      .elementwise = Element,
  };
}

}  // namespace ridge
