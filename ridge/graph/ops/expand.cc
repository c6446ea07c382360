// expand: y = x repeated so that it has `dims`, by the broadcasting rule.
#include <fmt/format.h>

#include "ridge/graph/axes.h"
#include "ridge/graph/ops/shared/elementwise.h"
#include "ridge/graph/ops/shared/strided.h"

namespace ridge {
namespace {

Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  const TensorType& x = call.inputs[0];
  const Dims& dims = call.integers("dims");
  if (Status status = CheckDims(dims); !status.ok()) return CallError(call, status.message());
  const Result<Dims> both = BroadcastDims(x.dims, dims);
  if (!both.ok() || *both != dims) {
    return CallError(call, fmt::format("x is {}, dims is {}; counted from the right, each extent "
                                       "of x must be 1 or that of dims",
                                       TypeToString(x), DimsToString(dims)));
  }
  return std::vector<TensorType>{{x.dtype, dims}};
}

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const Dims& dims = call.outputs[0].dims;
  ForEachStrided(dims, BroadcastStrides(call.inputs[0].dims, dims), 0,
                 [&](int64_t i, int64_t at) { out[0][i] = in[0][at]; });
}

// dx = dy summed over the repetitions.
void Gradient(GradBuilder& g) { g.dx() = g.dy(); }

// A dimension that is repeated comes from none of x; if x has it, with extent 1, from that too.
Axes FindAxes(const OpCall& call) {
  Axes axes;
  for (int d = 0; d < call.outputs[0].rank(); ++d) {
    const int from = BroadcastAxis(call, 0, d);
    const bool repeated =
        from == Factor::kNone || call.inputs[0].dims[static_cast<size_t>(from)] == 1;
    if (repeated) axes.push_back(Mapped(call, {Factor::kNone}, d));
    if (from != Factor::kNone) axes.push_back(Mapped(call, {from}, d));
  }
  return axes;
}

}  // namespace

OpDef ExpandDef() {
  return {
      .name = "expand",
      .doc = "y = x repeated to `dims`: extents of 1 stretch, new dimensions come first.",
      .input_names = {"x"},
      .output_names = {"y"},
      .attr_defaults = {{"dims", {}}},
      .required_attrs = {"dims"},
      .cost_class = CostClass::kMove,
      .infer_types = InferTypes,
      .gradient = Gradient,
      .recompute = Recompute::kCheap,
      .onnx = {"Expand", 8, 13, 8, 8},
      .axes = FindAxes,
      .linear = Linear::kJointly,
      .dims_attr = "dims",
      .reference = Reference,
  };
}

}  // namespace ridge
