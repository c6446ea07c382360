// conv_grad_input: dx of y = conv(x, w), from dy and w.  Also the transposed convolution.
#include <fmt/format.h>

#include <algorithm>

#include "ridge/graph/axes.h"
#include "ridge/graph/grad_builder.h"
#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/conv.h"

namespace ridge {
namespace {

// dy: float [B,O,OH,OW].  w: [O,C/groups,KH,KW].  dx: input_dims = [B,C,H,W], all of one dtype,
// or dx of out_dtype.
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  const TensorType &dy = call.inputs[0], &w = call.inputs[1];
  const Dims& input_dims = call.integers("input_dims");
  RIDGE_RETURN_IF_ERROR(CheckFloat(call, 0, "dy"));
  RIDGE_RETURN_IF_ERROR(CheckShape(call, "input_dims"));
  RIDGE_ASSIGN_OR_RETURN(const ConvGeometry g, MakeConvGeometry(call, input_dims, w.dims));
  RIDGE_RETURN_IF_ERROR(
      CheckType(call, 0, "dy", {dy.dtype, g.output_dims()}, "what conv of input_dims by w gives"));
  RIDGE_RETURN_IF_ERROR(CheckType(call, 1, "w", {dy.dtype, w.dims}, "the dtype of dy"));
  RIDGE_ASSIGN_OR_RETURN(const DType dtype, ProductDType(call));
  return std::vector<TensorType>{{dtype, input_dims}};
}

// The forward multiply-adds, each once.
Cost EstimateCost(const OpCall& call) {
  return {.flops = GradInputGeometryOf(call).flops(),
          .bytes_read = call.inputs[0].bytes() + call.inputs[1].bytes(),
          .bytes_written = call.outputs[0].bytes()};
}

// dx is linear in dy and in w; with g the gradient of dx:
// d(dy) = conv(g, w); dw = conv_grad_weight(g, dy).
void Gradient(GradBuilder& g) {
  const Value dy = g.x(), w = g.x(1);
  const Value ddx = Cast(g.dy(), dy.dtype());
  AttrMap attrs = PickAttrs(g.attrs(), kConvAttrs);
  if (g.needs_dx(0)) g.dx() = Op("conv", {ddx, w}, attrs);
  if (g.needs_dx(1)) {
    attrs["weight_dims"] = w.dims();
    g.dx(1) = Op("conv_grad_weight", {ddx, dy}, attrs);
  }
}

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const double *dy = in[0], *w = in[1];
  double* dx = out[0];
  std::fill_n(dx, call.outputs[0].elements(), 0.0);
  ForEachConvRow(GradInputGeometryOf(call), [&](const ConvRow& row) {
    // y[row.y + i] += x[row.x + i * row.x_step] * w[row.w]
    for (int64_t i = 0; i < row.count; ++i) dx[row.x + i * row.x_step] += dy[row.y + i] * w[row.w];
  });
}

Axes FindSharedAxes(const OpCall& call) {
  Axes axes = FirstAxis(call);
  if (call.integer("groups") == 1) {
    axes.push_back(FactorOf(call, {Factor::kNone, 1}, {1}));
    axes.push_back(FactorOf(call, {1, 0}, {}, Factor::Over::kSum));
  } else {
    axes.push_back(FactorOf(call, {1, 0}, {1}));
    axes.back().divided_attr = "groups";
  }
  return axes;
}

}  // namespace

OpDef ConvGradInputDef() {
  return {
      .name = "conv_grad_input",
      .doc =
          "The gradient of x in conv(x, w), dx [B,C,H,W] = `input_dims`, from dy [B,O,OH,OW] "
          "and w [O,C/groups,KH,KW], with 1 to 3 spatial dimensions: the transposed convolution. "
          "The other attributes are those of conv; dx is of `out_dtype`.",
      .input_names = {"dy", "w"},
      .output_names = {"dx"},
      .attr_defaults = {{"input_dims", {}},
                        {"stride", {}},
                        {"padding", {}},
                        {"dilation", {}},
                        {"groups", 1},
                        {"keep_f32", 0},
                        {"out_dtype", ""}},
      .required_attrs = {"input_dims"},
      .cost_class = CostClass::kConv,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .gradient = Gradient,
      .recompute = Recompute::kExpensive,
      .onnx = {"ConvTranspose", 1, 22},
      .axes = FirstAxis,
      .shared_axes = FindSharedAxes,
      .dims_attr = "input_dims",
      .reference = Reference,
  };
}

}  // namespace ridge
