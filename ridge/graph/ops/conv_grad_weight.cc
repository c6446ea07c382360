// conv_grad_weight: dw, and dbias when wanted, of y = conv(x, w, bias), from x and dy.
#include <fmt/format.h>

#include <algorithm>

#include "ridge/graph/axes.h"
#include "ridge/graph/grad_builder.h"
#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/conv.h"

namespace ridge {
namespace {

// x: float [B,C,H,W].  dy: [B,O,OH,OW].  dw: weight_dims = [O,C/groups,KH,KW].  dbias: [O].
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  const DType dtype = call.inputs[0].dtype;
  const Dims& weight_dims = call.integers("weight_dims");
  RIDGE_RETURN_IF_ERROR(CheckFloat(call, 0, "x"));
  RIDGE_RETURN_IF_ERROR(CheckFlag(call, "bias"));
  RIDGE_RETURN_IF_ERROR(CheckShape(call, "weight_dims"));
  RIDGE_ASSIGN_OR_RETURN(const ConvGeometry g,
                         MakeConvGeometry(call, call.inputs[0].dims, weight_dims));
  RIDGE_RETURN_IF_ERROR(
      CheckType(call, 1, "dy", {dtype, g.output_dims()}, "what conv of x by weight_dims gives"));
  RIDGE_ASSIGN_OR_RETURN(const DType out, ProductDType(call));
  std::vector<TensorType> types = {{out, weight_dims}};
  if (call.integer("bias") != 0) types.push_back({out, {g.outputs()}});
  return types;
}

// The forward multiply-adds, each once, and one add for each dy when the bias is wanted.
Cost EstimateCost(const OpCall& call) {
  Cost cost{.flops = GradWeightGeometryOf(call).flops(),
            .bytes_read = call.inputs[0].bytes() + call.inputs[1].bytes()};
  if (call.integer("bias") != 0) cost.flops += call.inputs[1].elements();
  for (const TensorType& type : call.outputs) cost.bytes_written += type.bytes();
  return cost;
}

// dw is linear in x and in dy; with g the gradient of dw and h that of dbias:
// dx = conv_grad_input(dy, g); d(dy) = conv(x, g, h).
void Gradient(GradBuilder& g) {
  const Value x = g.x(), dy = g.x(1);
  const DType dtype = x.dtype();
  const Value ddw = Cast(g.dy(), dtype);
  AttrMap attrs = PickAttrs(g.attrs(), kConvAttrs);
  if (g.needs_dx(1)) {
    Value ddbias;
    if (g.integer("bias") != 0) ddbias = Cast(g.dy(1), dtype);
    g.dx(1) = Op("conv", {x, ddw, ddbias}, attrs);
  }
  if (g.needs_dx(0)) {
    attrs["input_dims"] = x.dims();
    g.dx() = Op("conv_grad_input", {dy, ddw}, attrs);
  }
}

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const ConvGeometry g = GradWeightGeometryOf(call);
  const double *x = in[0], *dy = in[1];
  double* dw = out[0];
  std::fill_n(dw, call.outputs[0].elements(), 0.0);
  ForEachConvRow(g, [&](const ConvRow& row) {
    // y[row.y + i] += x[row.x + i * row.x_step] * w[row.w]
    for (int64_t i = 0; i < row.count; ++i) dw[row.w] += dy[row.y + i] * x[row.x + i * row.x_step];
  });
  if (call.integer("bias") == 0) return;
  double* dbias = out[1];
  std::fill_n(dbias, g.outputs(), 0.0);
  const int64_t plane = g.window.outputs();
  for (int64_t i = 0; i < g.batch * g.outputs() * plane; ++i) {
    dbias[i / plane % g.outputs()] += dy[i];
  }
}

// The batch, which is summed, and channels; dbias is the same for all input channels.
Axes FindSharedAxes(const OpCall& call) {
  Axes axes = {FactorOf(call, {0, 0}, {}, Factor::Over::kSum)};
  if (call.integer("groups") == 1) {
    axes.push_back(FactorOf(call, {Factor::kNone, 1}, {0, 0}));
    axes.push_back(FactorOf(call, {1}, {1}));
  } else {
    axes.push_back(FactorOf(call, {1, 1}, {0, 0}));
    axes.back().divided_attr = "groups";
  }
  return axes;
}

}  // namespace

OpDef ConvGradWeightDef() {
  return {
      .name = "conv_grad_weight",
      .doc =
          "The gradient of w in conv(x, w, bias), dw [O,C/groups,KH,KW] = `weight_dims`, from "
          "x [B,C,H,W] and dy [B,O,OH,OW]; with bias=1 also dbias [O] = sum of dy over B, OH "
          "and OW. The other attributes are those of conv; dw and dbias are of `out_dtype`.",
      .input_names = {"x", "dy"},
      .output_names = {"dw", "dbias"},
      .attr_defaults = {{"weight_dims", {}},
                        {"bias", 0},
                        {"stride", {}},
                        {"padding", {}},
                        {"dilation", {}},
                        {"groups", 1},
                        {"keep_f32", 0},
                        {"out_dtype", ""}},
      .required_attrs = {"weight_dims"},
      .cost_class = CostClass::kConv,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .gradient = Gradient,
      .recompute = Recompute::kExpensive,
      .shared_axes = FindSharedAxes,
      .dims_attr = "weight_dims",
      .reference = Reference,
  };
}

}  // namespace ridge
