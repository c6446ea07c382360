// avg_pool_grad: dx of y = avg_pool(x), from dy.
#include <algorithm>

#include "ridge/graph/axes.h"
#include "ridge/graph/grad_builder.h"
#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/pool.h"

namespace ridge {
namespace {

// dy: float [B,C,OH,OW].  dx: input_dims = [B,C,H,W].
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  const DType dtype = call.inputs[0].dtype;
  const Dims& input_dims = call.integers("input_dims");
  RIDGE_RETURN_IF_ERROR(CheckFloat(call, 0, "dy"));
  RIDGE_RETURN_IF_ERROR(CheckFlag(call, "count_include_pad"));
  RIDGE_RETURN_IF_ERROR(CheckShape(call, "input_dims"));
  RIDGE_ASSIGN_OR_RETURN(const PoolGeometry g, MakePoolGeometry(call, input_dims));
  RIDGE_RETURN_IF_ERROR(
      CheckType(call, 0, "dy", {dtype, g.output_dims()}, "what avg_pool of input_dims gives"));
  return std::vector<TensorType>{{dtype, input_dims}};
}

// One division for each window and one add for each tap inside x.
Cost EstimateCost(const OpCall& call) {
  return {.flops = PoolGeometryOf(call).TapsInside() + call.inputs[0].elements(),
          .bytes_read = call.inputs[0].bytes(),
          .bytes_written = call.outputs[0].bytes()};
}

// dx is linear in dy: d(dy) = avg_pool(g).
void Gradient(GradBuilder& g) {
  AttrMap attrs = g.attrs();
  attrs.erase("input_dims");
  g.dx() = Op("avg_pool", {g.dy()}, attrs);
}

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const PoolGeometry g = PoolGeometryOf(call);
  const double* dy = in[0];
  double* dx = out[0];
  std::fill_n(dx, call.outputs[0].elements(), 0.0);
  ForEachPoolOutput(g, [&](const PoolOutput& o) {
    double* image = dx + o.plane * g.window.inputs();
    const double share =
        dy[o.at] / static_cast<double>(AvgPoolDivisor(call, g.window, o.z, o.y, o.x));
    ForEachPoolTap(g.window, o, [&](int64_t to, int64_t) { image[to] += share; });
  });
}

}  // namespace

OpDef AvgPoolGradDef() {
  AttrMap attrs = PoolAttrDefaults();
  attrs["count_include_pad"] = 0;
  attrs["input_dims"] = std::vector<int64_t>{};
  return {
      .name = "avg_pool_grad",
      .doc =
          "The gradient of x in y = avg_pool(x), dx [B,C,H,W] = `input_dims`: each dy is shared "
          "evenly by the elements of its window. The other attributes are those of avg_pool.",
      .input_names = {"dy"},
      .output_names = {"dx"},
      .attr_defaults = std::move(attrs),
      .required_attrs = {"kernel", "input_dims"},
      .cost_class = CostClass::kPool,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .gradient = Gradient,
      .recompute = Recompute::kCheap,
      .shared_axes = [](const OpCall& call) { return AxesBelow(call, 2); },
      .dims_attr = "input_dims",
      .reference = Reference,
  };
}

}  // namespace ridge
