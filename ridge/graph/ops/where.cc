// where: y = condition ? a : b.
#include <fmt/format.h>

#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {
namespace {

Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  const TensorType& a = call.inputs[1];
  const TensorType& b = call.inputs[2];
  RIDGE_RETURN_IF_ERROR(CheckOperand(call, "the condition", call.inputs[0], Operands::kBool));
  if (a.dtype != b.dtype) {
    return CallError(call, fmt::format("a is {} and b is {}; they must have one dtype. hint: use "
                                       "cast",
                                       TypeToString(a), TypeToString(b)));
  }
  RIDGE_ASSIGN_OR_RETURN(Dims dims, BroadcastInputs(call));
  return std::vector<TensorType>{{a.dtype, std::move(dims)}};
}

double Element(std::span<const double> v, const AttrMap&) { return v[0] != 0 ? v[1] : v[2]; }

// da = condition ? dy : 0, db = condition ? 0 : dy.
void Gradient(GradBuilder& g) {
  const Value condition = g.x(), dy = g.dy();
  const Value zero = ScalarLike(dy, 0);
  if (g.needs_dx(1)) g.dx(1) = Where(condition, dy, zero);
  if (g.needs_dx(2)) g.dx(2) = Where(condition, zero, dy);
}

}  // namespace

OpDef WhereDef() {
  return {
      .name = "where",
      .doc = "y = condition ? a : b, for each element. Inputs broadcast; condition is bool.",
      .input_names = {"condition", "a", "b"},
      .output_names = {"y"},
      .infer_types = InferTypes,
      .cost = PointwiseCost<1>,
      .gradient = Gradient,
      .no_gradient_inputs = {0},
      .in_place = {{0, 1}, {0, 2}},
      .recompute = Recompute::kCheap,
      .onnx = {"Where", 9, 16, 9, 9},
      .elementwise = Element,
  };
}

}  // namespace ridge
