// cofactor: the cofactors of each matrix, the gradient of det; defined for singular ones too.
#include "ridge/graph/axes.h"
#include "ridge/graph/ops/shared/lu.h"

namespace ridge {
namespace {

Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  RIDGE_RETURN_IF_ERROR(CheckSquare(call));
  return std::vector<TensorType>{call.inputs[0]};
}

Cost EstimateCost(const OpCall& call) { return CubicCost(call, 8.0 / 3); }

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const int64_t n = call.inputs[0].dims.back();
  if (n == 0) return;
  for (int64_t m = 0; m < call.inputs[0].elements() / (n * n); ++m)
    Cofactors(DecomposeLu(in[0] + m * n * n, n), out[0] + m * n * n);
}

}  // namespace

OpDef CofactorDef() {
  return {
      .name = "cofactor",
      .doc =
          "y [.., n, n] = cofactors of each matrix of x: y[i, j] is the derivative of det(x) by "
          "x[i, j]. Defined for singular matrices.",
      .input_names = {"x"},
      .output_names = {"y"},
      .cost_class = CostClass::kMatmul,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .shared_axes = [](const OpCall& call) { return AxesBelow(call, call.inputs[0].rank() - 2); },
      .reference = Reference,
  };
}

}  // namespace ridge
