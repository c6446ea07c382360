// avg_pool: y[b,c,i,j] = the mean of x[b,c] under the window at (i,j).
#include "ridge/graph/axes.h"
#include "ridge/graph/grad_builder.h"
#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/pool.h"

namespace ridge {
namespace {

// x: float [B,C,H,W].  y: [B,C,OH,OW].
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  const TensorType& x = call.inputs[0];
  RIDGE_RETURN_IF_ERROR(CheckFloat(call, 0, "x"));
  RIDGE_RETURN_IF_ERROR(CheckFlag(call, "count_include_pad"));
  RIDGE_ASSIGN_OR_RETURN(const PoolGeometry g, MakePoolGeometry(call, x.dims));
  return std::vector<TensorType>{{x.dtype, g.output_dims()}};
}

// One add for each tap inside x and one division for each output.
Cost EstimateCost(const OpCall& call) {
  return {.flops = PoolGeometryOf(call).TapsInside() + call.outputs[0].elements(),
          .bytes_read = call.inputs[0].bytes(),
          .bytes_written = call.outputs[0].bytes()};
}

// Every element under a window gets its share of dy.
void Gradient(GradBuilder& g) {
  AttrMap attrs = g.attrs();
  attrs["input_dims"] = g.x().dims();
  g.dx() = Op("avg_pool_grad", {g.dy()}, attrs);
}

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const PoolGeometry g = PoolGeometryOf(call);
  const double* x = in[0];
  double* y = out[0];
  ForEachPoolOutput(g, [&](const PoolOutput& o) {
    const double* image = x + o.plane * g.window.inputs();
    double sum = 0;
    ForEachPoolTap(g.window, o, [&](int64_t from, int64_t) { sum += image[from]; });
    y[o.at] = sum / static_cast<double>(AvgPoolDivisor(call, g.window, o.z, o.y, o.x));
  });
}

}  // namespace

OpDef AvgPoolDef() {
  AttrMap attrs = PoolAttrDefaults();
  attrs["count_include_pad"] = 0;
  return {
      .name = "avg_pool",
      .doc =
          "The mean of x [B,C,H,W] under each window: y [B,C,OH,OW], with 1 to 3 spatial "
          "dimensions; attributes as those of max_pool. The sum is divided by the "
          "number of taps inside x, or with count_include_pad=1 inside x and its padding; a "
          "window wholly in the padding gives 0.",
      .input_names = {"x"},
      .output_names = {"y"},
      .attr_defaults = std::move(attrs),
      .required_attrs = {"kernel"},
      .cost_class = CostClass::kPool,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .gradient = Gradient,
      .recompute = Recompute::kCheap,
      .onnx = {"AveragePool", 7, 22},
      .axes = FirstAxis,
      .shared_axes = [](const OpCall& call) { return AxesBelow(call, 2); },
      .reference = Reference,
  };
}

}  // namespace ridge
