// gather_slices: what each slice of a batch has, at every slice.
//
// Statistics over a batch that runs in slices: a slice's share of them, gathered, then combined by
// an ordinary operator in the order of the slices.
#include <fmt/format.h>

#include <algorithm>

#include "ridge/graph/ops/shared/checks.h"

namespace ridge {
namespace {

// x: n values of one float type.  y: [slices, n, dims of x...].
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  RIDGE_RETURN_IF_ERROR(CheckFloat(call, 0, "x"));
  const TensorType& x = call.inputs[0];
  for (size_t i = 1; i < call.inputs.size(); ++i)
    RIDGE_RETURN_IF_ERROR(CheckType(call, i, "x", x, "the type of the first one"));
  const int64_t slices = call.integer("slices");
  if (slices < 1)
    return CallError(call, fmt::format("slices is {}; it must be at least 1", slices));
  TensorType y = x;
  y.dims.insert(y.dims.begin(), {slices, static_cast<int64_t>(call.inputs.size())});
  return std::vector<TensorType>{y};
}

// Of a batch whose slices are alike.
void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const int64_t count = call.inputs[0].elements();
  double* y = out[0];
  for (int64_t slice = 0; slice < call.integer("slices"); ++slice) {
    for (const double* x : in) y = std::copy_n(x, count, y);
  }
}

}  // namespace

OpDef GatherSlicesDef() {
  return {
      .name = "gather_slices",
      .doc =
          "The n values x of each slice of a batch, in the order of the slices: y "
          "[slices,n,dims of x...]. A step exchanges them between its slices, and between ranks; "
          "of one slice alone, y holds its x in each place.",
      .input_names = {"x..."},
      .output_names = {"y"},
      .attr_defaults = {{"slices", 1}},
      .cost_class = CostClass::kMove,
      .infer_types = InferTypes,
      .recompute = Recompute::kNever,
      .gathers_slices = true,
      .reference = Reference,
  };
}

}  // namespace ridge
