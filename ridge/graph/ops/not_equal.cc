// not_equal: y = a != b, as bool; true when either is NaN.
#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

double Element(std::span<const double> v, const AttrMap&) { return v[0] != v[1]; }

}  // namespace

OpDef NotEqualDef() {
  return {
      .name = "not_equal",
      .doc = "y = a != b, as bool; true when either is NaN. Inputs broadcast.",
      .input_names = {"a", "b"},
      .output_names = {"y"},
      .infer_types = InferPredicate<Operands::kAny>,
      .cost = PointwiseCost<1>,
      .recompute = Recompute::kCheap,
      .elementwise = Element,
  };
}

}  // namespace ridge
