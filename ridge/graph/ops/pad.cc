// pad: y = x with `before[d]` and `after[d]` elements of `value` around it in each dimension.
#include <fmt/format.h>

#include <algorithm>

#include "ridge/graph/axes.h"
#include "ridge/graph/grad_builder.h"
#include "ridge/graph/ops/shared/strided.h"

namespace ridge {
namespace {

Status CheckAmounts(const OpCall& call, const char* name) {
  constexpr int64_t kMost = int64_t{1} << 48;  // so that the sum of extents can't overflow
  const std::vector<int64_t>& amounts = call.integers(name);
  const TensorType& x = call.inputs[0];
  if (amounts.size() != x.dims.size()) {
    return CallError(call, fmt::format("{} is {}, x is {}; one number for each of its {} "
                                       "dimensions is needed",
                                       name, DimsToString(amounts), TypeToString(x), x.rank()));
  }
  for (int64_t amount : amounts) {
    if (amount >= 0 && amount <= kMost) continue;
    return CallError(call, fmt::format("{} is {}; each must be in [0, 2^48]. hint: slice removes "
                                       "elements",
                                       name, DimsToString(amounts)));
  }
  return Status();
}

Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  if (call.text("mode") != "constant") {
    return CallError(
        call, fmt::format("mode is \"{}\"; only \"constant\" is supported", call.text("mode")));
  }
  RIDGE_RETURN_IF_ERROR(CheckAmounts(call, "before"));
  RIDGE_RETURN_IF_ERROR(CheckAmounts(call, "after"));
  TensorType out = call.inputs[0];
  for (size_t d = 0; d < out.dims.size(); ++d)
    out.dims[d] += call.integers("before")[d] + call.integers("after")[d];
  return std::vector<TensorType>{std::move(out)};
}

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  std::fill_n(out[0], call.outputs[0].elements(), call.number("value"));
  const Dims strides = RowMajorStrides(call.outputs[0].dims);
  int64_t base = 0;
  for (size_t d = 0; d < strides.size(); ++d) base += call.integers("before")[d] * strides[d];
  ForEachStrided(call.inputs[0].dims, strides, base,
                 [&](int64_t i, int64_t at) { out[0][at] = in[0][i]; });
}

// dx = the middle of dy.
void Gradient(GradBuilder& g) {
  std::vector<int64_t> ends = g.integers("before");
  const Dims dims = g.x().dims();
  for (size_t d = 0; d < ends.size(); ++d) ends[d] += dims[d];
  g.dx() = Op("slice", {g.dy()}, {{"starts", g.integers("before")}, {"ends", std::move(ends)}});
}

// Those that nothing is added to.
Axes FindAxes(const OpCall& call) {
  Axes axes;
  for (int d = 0; d < call.inputs[0].rank(); ++d) {
    const auto at = static_cast<size_t>(d);
    if (call.integers("before")[at] == 0 && call.integers("after")[at] == 0)
      axes.push_back(Mapped(call, {d}, d));
  }
  return axes;
}

}  // namespace

OpDef PadDef() {
  return {
      .name = "pad",
      .doc = "y = x with before[d] and after[d] elements of `value` around it in dimension d.",
      .input_names = {"x"},
      .output_names = {"y"},
      .attr_defaults = {{"before", {}}, {"after", {}}, {"value", 0.0}, {"mode", "constant"}},
      .required_attrs = {"before", "after"},
      .cost_class = CostClass::kMove,
      .infer_types = InferTypes,
      .gradient = Gradient,
      .recompute = Recompute::kCheap,
      .onnx = {"Pad", 11, 13, 11, 11},
      .axes = FindAxes,
      .reference = Reference,
  };
}

}  // namespace ridge
