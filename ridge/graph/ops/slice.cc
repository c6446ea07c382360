// slice: y = x[start:end:step] along some axes.
#include "ridge/graph/ops/shared/slice.h"

#include "ridge/graph/axes.h"
#include "ridge/graph/grad_builder.h"
#include "ridge/graph/ops/shared/strided.h"

namespace ridge {
namespace {

Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  const TensorType& x = call.inputs[0];
  RIDGE_ASSIGN_OR_RETURN(const std::vector<AxisSlice> ranges, AxisSlices(call, x.dims));
  return std::vector<TensorType>{{x.dtype, SlicedDims(ranges)}};
}

// Only what is kept is read.
Cost EstimateCost(const OpCall& call) {
  const int64_t bytes = call.outputs[0].bytes();
  return {.bytes_read = bytes, .bytes_written = bytes};
}

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const Dims& dims = call.inputs[0].dims;
  const SliceView view = ViewSlice(*AxisSlices(call, dims), dims);
  ForEachStrided(call.outputs[0].dims, view.strides, view.base,
                 [&](int64_t i, int64_t at) { out[0][i] = in[0][at]; });
}

// dx = zeros with dy at the places that were read.
void Gradient(GradBuilder& g) {
  AttrMap attrs = g.attrs();
  attrs["dims"] = g.x().dims();
  g.dx() = Op("slice_grad", {g.dy()}, std::move(attrs));
}

// Those taken whole.
Axes FindAxes(const OpCall& call) {
  const Dims& dims = call.inputs[0].dims;
  const Result<std::vector<AxisSlice>> ranges = AxisSlices(call, dims);
  Axes axes;
  for (size_t d = 0; ranges.ok() && d < dims.size(); ++d) {
    const AxisSlice& range = (*ranges)[d];
    if (range.start == 0 && range.step == 1 && range.count == dims[d])
      axes.push_back(Mapped(call, {static_cast<int>(d)}, static_cast<int>(d)));
  }
  return axes;
}

}  // namespace

OpDef SliceDef() {
  return {
      .name = "slice",
      .doc =
          "y = x[starts:ends:steps] along `axes` (empty: the first ones). Negative starts and ends "
          "count from the end, then both are clamped; steps may be negative.",
      .input_names = {"x"},
      .output_names = {"y"},
      .attr_defaults = SliceAttrs(),
      .required_attrs = {"starts", "ends"},
      .cost_class = CostClass::kMove,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .gradient = Gradient,
      .recompute = Recompute::kCheap,
      .onnx = {"Slice", 10, 13, 10, 10},
      .axes = FindAxes,
      .linear = Linear::kJointly,
      .reference = Reference,
  };
}

}  // namespace ridge
