// scatter_add: zeros of shape `dims` with updates added at indices along `axis`; gather's gradient.
#include <fmt/format.h>

#include <algorithm>

#include "ridge/graph/axes.h"
#include "ridge/graph/grad_builder.h"
#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/gather.h"

namespace ridge {
namespace {

// indices: i64 or i32, any shape.  updates: dims[..axis) + indices.dims + dims(axis..], not bool.
// y: dims.
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  const TensorType &indices = call.inputs[0], &updates = call.inputs[1];
  const Dims& dims = call.integers("dims");
  RIDGE_RETURN_IF_ERROR(CheckIndex(call, 0, "indices"));
  RIDGE_RETURN_IF_ERROR(CheckShape(call, "dims"));
  if (!IsFloat(updates.dtype) && !IsInteger(updates.dtype)) {
    return CallError(call, fmt::format("updates is {}; {} cannot be added; hint: cast it",
                                       TypeToString(updates), DTypeName(updates.dtype)));
  }
  RIDGE_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(call.integer("axis"),
                                                       static_cast<int>(dims.size()), call.where));
  RIDGE_RETURN_IF_ERROR(CheckType(call, 1, "updates",
                                  {updates.dtype, GatherDims(dims, axis, indices.dims)},
                                  "what gather of dims by indices gives"));
  return std::vector<TensorType>{{updates.dtype, dims}};
}

// One add for each update; the places it hits are read and written.
Cost EstimateCost(const OpCall& call) {
  const TensorType& updates = call.inputs[1];
  return {.flops = updates.elements(),
          .bytes_read = call.inputs[0].bytes() + 2 * updates.bytes(),
          .bytes_written = call.outputs[0].bytes() + updates.bytes()};
}

// d(updates) = gather(dy, indices).
void Gradient(GradBuilder& g) { g.dx(1) = Gather(g.dy(), g.x(), g.integer("axis")); }

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const Dims& dims = call.integers("dims");
  const int axis = *NormalizeAxis(call.integer("axis"), static_cast<int>(dims.size()), call.where);
  double* y = out[0];
  std::fill_n(y, call.outputs[0].elements(), 0.0);
  ForEachGathered(dims, axis, call.inputs[0].elements(), in[0], [&](int64_t to, int64_t from) {
    if (to >= 0) y[to] += in[1][from];
  });
}

// Those of y besides `axis`, and those of the indices, which are summed.
Axes FindSharedAxes(const OpCall& call) {
  const int rank = call.outputs[0].rank(), taken = call.inputs[0].rank();
  const int given = static_cast<int>(call.integer("axis"));
  const int axis = given < 0 ? given + rank : given;
  Axes axes;
  for (int d = 0; d < rank; ++d) {
    if (d != axis) axes.push_back(Mapped(call, {Factor::kNone, d < axis ? d : d + taken - 1}, d));
  }
  for (int d = 0; d < taken; ++d)
    axes.push_back(FactorOf(call, {d, axis + d}, {}, Factor::Over::kSum));
  return axes;
}

}  // namespace

OpDef ScatterAddDef() {
  return {
      .name = "scatter_add",
      .doc =
          "Zeros of shape `dims` to which updates are added along `axis`: y[.., indices[i..], "
          "..] += updates[.., i.., ..], in the order of updates. Negative indices count from "
          "the end; an index out of range is skipped. Sums of i64 are exact up to 2^53.",
      .input_names = {"indices", "updates"},
      .output_names = {"y"},
      .attr_defaults = {{"dims", {}}, {"axis", 0}},
      .required_attrs = {"dims"},
      .cost_class = CostClass::kMove,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .gradient = Gradient,
      .no_gradient_inputs = {0},
      .recompute = Recompute::kCheap,
      .onnx = {"ScatterND", 11, 13, 11, 11},
      .shared_axes = FindSharedAxes,
      .dims_attr = "dims",
      .reference = Reference,
  };
}

}  // namespace ridge
