// det: the determinant of each matrix.
#include "ridge/graph/axes.h"
#include "ridge/graph/grad_builder.h"
#include "ridge/graph/ops/shared/lu.h"
#include "ridge/graph/ops/shared/reduce.h"

namespace ridge {
namespace {

Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  RIDGE_RETURN_IF_ERROR(CheckSquare(call));
  const TensorType& x = call.inputs[0];
  return std::vector<TensorType>{{x.dtype, Dims(x.dims.begin(), x.dims.end() - 2)}};
}

Cost EstimateCost(const OpCall& call) { return CubicCost(call, 2.0 / 3); }

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const int64_t n = call.inputs[0].dims.back();
  for (int64_t m = 0; m < call.outputs[0].elements(); ++m)
    out[0][m] = Determinant(DecomposeLu(in[0] + m * n * n, n));
}

// dx = dy * cofactor(x).
void Gradient(GradBuilder& g) {
  Dims dims = g.dy().dims();
  dims.insert(dims.end(), {1, 1});
  const Value dy = ReshapeExactly(g.dy(), dims);
  g.dx() = dy * Op("cofactor", {g.x()});
}

}  // namespace

OpDef DetDef() {
  return {
      .name = "det",
      .doc = "y [..] = determinant of each matrix of x [.., n, n]; 1 for n = 0.",
      .input_names = {"x"},
      .output_names = {"y"},
      .cost_class = CostClass::kMatmul,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .gradient = Gradient,
      .onnx = {"Det", 11, 22},
      .shared_axes = [](const OpCall& call) { return AxesBelow(call, call.inputs[0].rank() - 2); },
      .reference = Reference,
  };
}

}  // namespace ridge
