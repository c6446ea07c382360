// slice_grad: dx = zeros of `dims` with dy at the places that slice read.
#include <fmt/format.h>

#include <algorithm>

#include "ridge/graph/axes.h"
#include "ridge/graph/grad_builder.h"
#include "ridge/graph/ops/shared/slice.h"
#include "ridge/graph/ops/shared/strided.h"

namespace ridge {
namespace {

Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  const TensorType& dy = call.inputs[0];
  const Dims& dims = call.integers("dims");
  if (Status status = CheckDims(dims); !status.ok()) return CallError(call, status.message());
  RIDGE_ASSIGN_OR_RETURN(const std::vector<AxisSlice> ranges, AxisSlices(call, dims));
  if (SlicedDims(ranges) != dy.dims) {
    return CallError(
        call, fmt::format("dy is {}; the slice of {} is {}, and dy must have its dims",
                          TypeToString(dy), DimsToString(dims), DimsToString(SlicedDims(ranges))));
  }
  return std::vector<TensorType>{{dy.dtype, dims}};
}

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const Dims& dims = call.outputs[0].dims;
  std::fill_n(out[0], call.outputs[0].elements(), 0.0);
  const SliceView view = ViewSlice(*AxisSlices(call, dims), dims);
  ForEachStrided(call.inputs[0].dims, view.strides, view.base,
                 [&](int64_t i, int64_t at) { out[0][at] = in[0][i]; });
}

// Linear in dy, and slice is its transpose.
void Gradient(GradBuilder& g) {
  AttrMap attrs = g.attrs();
  attrs.erase("dims");
  g.dx() = Op("slice", {g.dy()}, std::move(attrs));
}

AttrMap Defaults() {
  AttrMap attrs = SliceAttrs();
  attrs["dims"] = std::vector<int64_t>();
  return attrs;
}

// The dimensions of which slice reads all.
Axes FindSharedAxes(const OpCall& call) {
  const Dims& dims = call.outputs[0].dims;
  const Result<std::vector<AxisSlice>> ranges = AxisSlices(call, dims);
  Axes axes;
  for (int d = 0; ranges.ok() && d < call.outputs[0].rank(); ++d) {
    const AxisSlice& range = (*ranges)[static_cast<size_t>(d)];
    if (range.start == 0 && range.step == 1 && range.count == dims[static_cast<size_t>(d)])
      axes.push_back(Mapped(call, {d}, d));
  }
  return axes;
}

}  // namespace

OpDef SliceGradDef() {
  return {
      .name = "slice_grad",
      .doc = "dx = zeros of `dims` with dy where slice with the same attributes reads.",
      .input_names = {"dy"},
      .output_names = {"dx"},
      .attr_defaults = Defaults(),
      .required_attrs = {"dims", "starts", "ends"},
      .cost_class = CostClass::kMove,
      .infer_types = InferTypes,
      .gradient = Gradient,
      .shared_axes = FindSharedAxes,
      .dims_attr = "dims",
      .reference = Reference,
  };
}

}  // namespace ridge
