// concat: y = the inputs one after the other along `axis`.
#include <fmt/format.h>

#include <algorithm>

#include "ridge/graph/axes.h"
#include "ridge/graph/grad_builder.h"
#include "ridge/graph/ops/shared/strided.h"

namespace ridge {
namespace {

size_t Axis(int64_t axis, const Dims& dims) {
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(dims.size()) : axis);
}

Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  TensorType out = call.inputs[0];
  RIDGE_ASSIGN_OR_RETURN(const int at, NormalizeAxis(call.integer("axis"), out.rank(), call.where));
  const auto axis = static_cast<size_t>(at);
  for (size_t i = 1; i < call.inputs.size(); ++i) {
    TensorType expected = call.inputs[i];  // as input 0, but for the axis
    if (expected.rank() == out.rank()) expected.dims[axis] = call.inputs[0].dims[axis];
    if (expected != call.inputs[0]) {
      return CallError(
          call, fmt::format("input {} is {}, input 0 is {}; dtype and all extents but "
                            "that of axis {} must be equal",
                            i, TypeToString(call.inputs[i]), TypeToString(call.inputs[0]), axis));
    }
    out.dims[axis] += call.inputs[i].dims[axis];
    if (Status status = CheckDims(out.dims); !status.ok()) return CallError(call, status.message());
  }
  return std::vector<TensorType>{std::move(out)};
}

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const Dims& dims = call.outputs[0].dims;
  const Dims strides = RowMajorStrides(dims);
  const size_t axis = Axis(call.integer("axis"), dims);
  int64_t begin = 0;
  for (size_t k = 0; k < call.inputs.size(); ++k) {
    ForEachStrided(call.inputs[k].dims, strides, begin * strides[axis],
                   [&](int64_t i, int64_t at) { out[0][at] = in[k][i]; });
    begin += call.inputs[k].dims[axis];
  }
}

// Each dx is its part of dy.
void Gradient(GradBuilder& g) {
  const int64_t axis = g.integer("axis");
  int64_t begin = 0;
  for (size_t i = 0; i < g.input_count(); ++i) {
    const Dims dims = g.x(i).dims();
    const int64_t end = begin + dims[Axis(axis, dims)];
    if (g.needs_dx(i)) {
      g.dx(i) = Slice(g.dy(), axis, begin, end);
    }
    begin = end;
  }
}

Axes FindAxes(const OpCall& call) {
  Axes axes = AxesBesidesAttr(call);
  for (Factor& factor : axes)
    std::fill(factor.inputs.begin(), factor.inputs.end(), factor.outputs[0]);
  return axes;
}

}  // namespace

OpDef ConcatDef() {
  return {
      .name = "concat",
      .doc = "y = the inputs one after the other along `axis`; their other extents are equal.",
      .input_names = {"x..."},
      .output_names = {"y"},
      .attr_defaults = {{"axis", 0}},
      .required_attrs = {"axis"},
      .cost_class = CostClass::kMove,
      .infer_types = InferTypes,
      .gradient = Gradient,
      .recompute = Recompute::kCheap,
      .onnx = {"Concat", 4, 13, 4, 4},
      .axes = FindAxes,
      .reference = Reference,
  };
}

}  // namespace ridge
