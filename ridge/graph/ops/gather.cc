// gather: y = x taken along `axis` at indices; the look-up of an embedding table with axis=0.
#include "ridge/graph/ops/shared/gather.h"

#include <cmath>
#include <limits>

#include "ridge/graph/axes.h"
#include "ridge/graph/grad_builder.h"
#include "ridge/graph/ops/shared/checks.h"

namespace ridge {
namespace {

// x: any type, rank >= 1.  indices: i64 or i32, any shape.
// y: x.dims[..axis) + indices.dims + x.dims(axis..].
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  const TensorType &x = call.inputs[0], &indices = call.inputs[1];
  RIDGE_RETURN_IF_ERROR(CheckIndex(call, 1, "indices"));
  RIDGE_ASSIGN_OR_RETURN(const int axis, CheckAxis(call, "x"));
  return std::vector<TensorType>{{x.dtype, GatherDims(x.dims, axis, indices.dims)}};
}

// Reads no more of x than it writes.
Cost EstimateCost(const OpCall& call) {
  const int64_t moved = call.outputs[0].bytes();
  return {.flops = 0, .bytes_read = moved + call.inputs[1].bytes(), .bytes_written = moved};
}

// dx = scatter_add(indices, dy).
void Gradient(GradBuilder& g) {
  const Value x = g.x();
  g.dx() = Op("scatter_add", {g.x(1), g.dy()}, {{"dims", x.dims()}, {"axis", g.integer("axis")}});
}

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const TensorType& x = call.inputs[0];
  const int axis = CallAxis(call);
  const double missing = IsFloat(x.dtype) ? std::numeric_limits<double>::quiet_NaN() : 0;
  double* y = out[0];
  ForEachGathered(x.dims, axis, call.inputs[1].elements(), in[1],
                  [&](int64_t from, int64_t to) { y[to] = from < 0 ? missing : in[0][from]; });
}

// Those of x besides `axis`, and those of the indices.
Axes FindAxes(const OpCall& call) {
  const int axis = CallAxis(call), taken = call.inputs[1].rank();
  Axes axes;
  for (int d = 0; d < call.inputs[0].rank(); ++d) {
    if (d != axis) axes.push_back(Mapped(call, {d, Factor::kNone}, d < axis ? d : d + taken - 1));
  }
  for (int d = 0; d < taken; ++d) axes.push_back(Mapped(call, {Factor::kNone, d}, axis + d));
  return axes;
}

}  // namespace

OpDef GatherDef() {
  return {
      .name = "gather",
      .doc =
          "Takes slices of x along `axis`: y has the dimensions of x with that of `axis` "
          "replaced by those of indices, y[.., i.., ..] = x[.., indices[i..], ..]. Negative "
          "indices count from the end; an index out of range gives NaN (0 for integers).",
      .input_names = {"x", "indices"},
      .output_names = {"y"},
      .attr_defaults = {{"axis", 0}},
      .cost_class = CostClass::kMove,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .gradient = Gradient,
      .no_gradient_inputs = {1},
      .recompute = Recompute::kCheap,
      .onnx = {"Gather", 11, 13, 11, 11},
      .axes = FindAxes,
      .reference = Reference,
  };
}

}  // namespace ridge
