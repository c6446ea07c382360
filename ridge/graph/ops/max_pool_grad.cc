// max_pool_grad: dx of y, index = max_pool(x), from index and dy.
#include <algorithm>

#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/pool.h"

namespace ridge {
namespace {

// index: u8 or i32 [B,C,OH,OW].  dy: float [B,C,OH,OW].  dx: input_dims = [B,C,H,W].
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  const DType dtype = call.inputs[1].dtype;
  const Dims& input_dims = call.integers("input_dims");
  RIDGE_RETURN_IF_ERROR(CheckFloat(call, 1, "dy"));
  RIDGE_RETURN_IF_ERROR(CheckShape(call, "input_dims"));
  RIDGE_ASSIGN_OR_RETURN(const PoolGeometry g, MakePoolGeometry(call, input_dims));
  const char* why = "what max_pool of input_dims gives";
  RIDGE_RETURN_IF_ERROR(CheckType(call, 0, "index", {PoolIndexDType(g), g.output_dims()}, why));
  RIDGE_RETURN_IF_ERROR(CheckType(call, 1, "dy", {dtype, g.output_dims()}, why));
  return std::vector<TensorType>{{dtype, input_dims}};
}

// One add for each window.
Cost EstimateCost(const OpCall& call) {
  return {.flops = call.inputs[1].elements(),
          .bytes_read = call.inputs[0].bytes() + call.inputs[1].bytes(),
          .bytes_written = call.outputs[0].bytes()};
}

// A tap number that is out of the kernel or in the padding sends its dy nowhere.
void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const PoolGeometry g = PoolGeometryOf(call);
  const WindowAxis &wz = g.window.z(), &wy = g.window.y(), &wx = g.window.x();
  const double *index = in[0], *dy = in[1];
  double* dx = out[0];
  std::fill_n(dx, call.outputs[0].elements(), 0.0);
  ForEachPoolOutput(g, [&](const PoolOutput& o) {
    const auto tap = static_cast<int64_t>(index[o.at]);
    if (tap < 0 || tap >= g.window.taps()) return;
    const int64_t z = wz.InputAt(o.z, tap / (wx.kernel * wy.kernel)),
                  y = wy.InputAt(o.y, tap / wx.kernel % wy.kernel),
                  x = wx.InputAt(o.x, tap % wx.kernel);
    if (wz.Inside(z) && wy.Inside(y) && wx.Inside(x))
      dx[o.plane * g.window.inputs() + g.window.InputIndex(z, y, x)] += dy[o.at];
  });
}

}  // namespace

OpDef MaxPoolGradDef() {
  AttrMap attrs = PoolAttrDefaults();
  attrs["input_dims"] = std::vector<int64_t>{};
  return {
      .name = "max_pool_grad",
      .doc =
          "The gradient of x in y, index = max_pool(x), dx [B,C,H,W] = `input_dims`: each dy is "
          "added where its window found the maximum. The other attributes are those of "
          "max_pool.",
      .input_names = {"index", "dy"},
      .output_names = {"dx"},
      .attr_defaults = std::move(attrs),
      .required_attrs = {"kernel", "input_dims"},
      .cost_class = CostClass::kPool,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .recompute = Recompute::kCheap,
      .reference = Reference,
  };
}

}  // namespace ridge
