// logical_or: y = a or b, of bools.
#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

double Element(std::span<const double> v, const AttrMap&) { return v[0] != 0 || v[1] != 0; }

}  // namespace

OpDef LogicalOrDef() {
  return {
      .name = "logical_or",
      .doc = "y = a or b, of bools. Inputs broadcast.",
      .input_names = {"a", "b"},
      .output_names = {"y"},
      .infer_types = InferPointwise<Operands::kBool>,
      .cost = PointwiseCost<1>,
      .in_place = {{0, 0}, {0, 1}},
      .recompute = Recompute::kCheap,
      .onnx = "Or@7",
      .elementwise = Element,
  };
}

}  // namespace ridge
