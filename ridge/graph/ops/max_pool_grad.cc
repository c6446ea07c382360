// max_pool_grad: dx of y, index = max_pool(x), from index and dy.
#include <algorithm>

#include "ridge/graph/axes.h"
#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/pool.h"
#include "ridge/graph/ops/shared/pool_positions.h"
#include "ridge/graph/ops/shared/reduce.h"

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

// Whether the window of each output holds some of x: bool [OD,OH,OW], as x has dimensions.
Tensor InsideWindows(const SlidingWindow& window) {
  Dims dims;
  window.AppendOutputs(dims);
  Tensor inside({DType::kBool, dims});
  int64_t at = 0;
  for (int64_t z = 0; z < window.z().output; ++z) {
    for (int64_t y = 0; y < window.y().output; ++y) {
      for (int64_t x = 0; x < window.x().output; ++x) {
        const bool empty = window.z().TapsOfOutput(z, /*with_padding=*/false) == 0 ||
                           window.y().TapsOfOutput(y, /*with_padding=*/false) == 0 ||
                           window.x().TapsOfOutput(x, /*with_padding=*/false) == 0;
        inside.as_mutable<bool>()[at++] = !empty;
      }
    }
  }
  return inside;
}

bool AllTrue(const Tensor& t) {
  return std::all_of(t.as<bool>(), t.as<bool>() + t.elements(), [](bool v) { return v; });
}

// dx is linear in dy: d(dy) = the gradient of dx at the winners, 0 where nothing was sent.
void Gradient(GradBuilder& g) {
  GraphBuilder& b = g.b();
  const Value index = g.x(), ddx = g.dy();
  const TensorType dy = g.x(1).type();
  OpCall call{.where = "max_pool_grad", .inputs = {}, .outputs = {}, .attrs = g.attrs()};
  const Result<PoolGeometry> geometry = MakePoolGeometry(call, ddx.dims());
  if (!geometry.ok()) return b.Fail(geometry.status());
  const Value places = MaxPoolPositions(b, index, *geometry, /*column_major=*/false);
  Value ddy = Gather(ReshapeExactly(ddx, {ElementCount(ddx.dims())}), places);
  Tensor inside = InsideWindows(geometry->window);
  if (!AllTrue(inside)) {
    const Value zero = b.Scalar(dy.dtype, 0);
    ddy = Where(b.Constant(std::move(inside)), ddy, zero);
  }
  g.dx(1) = ddy;
}

// Drops a dy whose index is outside the kernel or in the padding.
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
      .gradient = Gradient,
      .no_gradient_inputs = {0},
      .recompute = Recompute::kCheap,
      .shared_axes = [](const OpCall& call) -> Axes {
        return {Mapped(call, {0, 0}, 0), Mapped(call, {1, 1}, 1)};
      },
      .dims_attr = "input_dims",
      .reference = Reference,
  };
}

}  // namespace ridge
