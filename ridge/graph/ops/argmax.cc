// argmax: y = index of the largest x along one axis, i64.  The first one wins; NaN counts as
// largest.
#include <fmt/format.h>

#include "ridge/graph/axes.h"
#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/reduce.h"

namespace ridge {
namespace {

Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  const TensorType& x = call.inputs[0];
  RIDGE_RETURN_IF_ERROR(CheckOperand(call, "the input", x, Operands::kNumber));
  RIDGE_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(call.integer("axis"), x.rank(), call.where));
  Dims dims = x.dims;
  if (call.integer("keep_dims") != 0) {
    dims[static_cast<size_t>(axis)] = 1;
  } else {
    dims.erase(dims.begin() + axis);
  }
  if (x.elements() == 0 && ElementCount(dims) > 0) {
    return CallError(call, fmt::format("the input is {}: nothing to choose from along axis {}; at "
                                       "least one element is needed",
                                       TypeToString(x), axis));
  }
  return std::vector<TensorType>{{DType::kI64, std::move(dims)}};
}

Cost EstimateCost(const OpCall& call) {
  return {.flops = call.inputs[0].elements(),
          .bytes_read = call.inputs[0].bytes(),
          .bytes_written = call.outputs[0].bytes()};
}

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const TensorType& x = call.inputs[0];
  const int64_t given = call.integer("axis");
  const auto axis = static_cast<size_t>(given < 0 ? given + x.rank() : given);
  const int64_t stride = RowMajorStrides(x.dims)[axis];
  const int64_t count = x.dims[axis];
  for (int64_t o = 0; o < call.outputs[0].elements(); ++o) {
    const double* line = in[0] + o / stride * count * stride + o % stride;
    out[0][o] = static_cast<double>(FirstLargest(line, count, stride));
  }
}

Axes FindAxes(const OpCall& call) {
  const int axis = CallAxis(call);
  Axes axes = AxesBut(call, axis);
  for (Factor& factor : axes) {
    if (factor.outputs[0] > axis && call.integer("keep_dims") == 0) --factor.outputs[0];
  }
  return axes;
}

}  // namespace

OpDef ArgmaxDef() {
  return {
      .name = "argmax",
      .doc =
          "y = index (i64) of the largest x along `axis`; the first of equals; NaN counts as "
          "largest. keep_dims=1 leaves the axis with extent 1.",
      .input_names = {"x"},
      .output_names = {"y"},
      .attr_defaults = {{"axis", -1}, {"keep_dims", 0}},
      .cost_class = CostClass::kReduce,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .onnx = {"ArgMax", 1, 13, 1, 1},
      .axes = FindAxes,
      .reference = Reference,
  };
}

}  // namespace ridge
