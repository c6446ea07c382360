// max_pool: y[b,c,i,j] = the largest x[b,c] under the window at (i,j).
//
// The number of the winning tap is an output, so the gradient reads neither x nor y: one byte for
// each y instead of four for each x stays alive until the backward pass.
#include <cmath>
#include <limits>

#include "ridge/graph/axes.h"
#include "ridge/graph/grad_builder.h"
#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/pool.h"

namespace ridge {
namespace {

// x: float [B,C,H,W].  y: [B,C,OH,OW].  index: u8 or i32, the shape of y.
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  const TensorType& x = call.inputs[0];
  RIDGE_RETURN_IF_ERROR(CheckFloat(call, 0, "x"));
  RIDGE_ASSIGN_OR_RETURN(const PoolGeometry g, MakePoolGeometry(call, x.dims));
  return std::vector<TensorType>{{x.dtype, g.output_dims()}, {PoolIndexDType(g), g.output_dims()}};
}

// One comparison for each tap inside x.
Cost EstimateCost(const OpCall& call) {
  return {.flops = PoolGeometryOf(call).TapsInside(),
          .bytes_read = call.inputs[0].bytes(),
          .bytes_written = call.outputs[0].bytes() + call.outputs[1].bytes()};
}

// dx = dy at the winning tap of each window, added up where windows overlap.
void Gradient(GradBuilder& g) {
  AttrMap attrs = PickAttrs(g.attrs(), kPoolAttrs);
  attrs["input_dims"] = g.x().dims();
  g.dx() = Op("max_pool_grad", {g.y(1), g.dy()}, attrs);
}

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const PoolGeometry g = PoolGeometryOf(call);
  const double* x = in[0];
  double *y = out[0], *index = out[1];
  ForEachPoolOutput(g, [&](const PoolOutput& o) {
    const double* image = x + o.plane * g.window.inputs();
    double best = -std::numeric_limits<double>::infinity();
    int64_t winner = -1;
    ForEachPoolTap(g.window, o, [&](int64_t from, int64_t tap) {
      const double v = image[from];
      if (winner >= 0 && !(v > best) && !(std::isnan(v) && !std::isnan(best))) return;
      best = v;
      winner = tap;
    });
    y[o.at] = best;
    index[o.at] = winner < 0 ? 0 : static_cast<double>(winner);
  });
}

}  // namespace

OpDef MaxPoolDef() {
  return {
      .name = "max_pool",
      .doc =
          "The largest element of x [B,C,H,W] under each window: y [B,C,OH,OW], and index, the "
          "number kh*KW+kw of the winning tap (u8, or i32 when the kernel has over 255 taps); "
          "with 1 to 3 spatial dimensions. Attributes as those of conv; ceil_mode=1 rounds the "
          "number of windows up, but none may start in the last padding. "
          "The first of equal elements wins, NaN beats every number, padding never wins; a "
          "window wholly in the padding gives -inf.",
      .input_names = {"x"},
      .output_names = {"y", "index"},
      .attr_defaults = PoolAttrDefaults(),
      .required_attrs = {"kernel"},
      .cost_class = CostClass::kPool,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .gradient = Gradient,
      .recompute = Recompute::kCheap,
      .onnx = {"MaxPool", 1, 22, 0, 12},
      .axes = FirstAxis,
      .shared_axes = [](const OpCall& call) { return AxesBelow(call, 2); },
      .reference = Reference,
  };
}

}  // namespace ridge
