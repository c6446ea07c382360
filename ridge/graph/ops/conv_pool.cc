// conv_pool: y = max_pool(relu(conv(x, w, bias))) with 2x2 windows side by side, and where each
// window found its maximum.
//
// Made by the fuse pass, after differentiation.  The result of the convolution, four times as large
// as y, is never written; one byte for each y is all that the gradient needs to know of it.
#include "ridge/graph/ops/shared/conv_pool.h"

#include "ridge/graph/axes.h"
#include "ridge/graph/ops/shared/checks.h"

namespace ridge {
namespace {

// x: float [B,C,H,W].  w: [O,C,KH,KW].  bias: [O].  y: [B,O,PH,PW].  place: u8, the shape of y.
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  const TensorType &x = call.inputs[0], &w = call.inputs[1];
  RIDGE_RETURN_IF_ERROR(CheckFloat(call, 0, "x"));
  RIDGE_RETURN_IF_ERROR(CheckFlag(call, "relu"));
  RIDGE_RETURN_IF_ERROR(CheckFlag(call, "keep_f32"));
  RIDGE_ASSIGN_OR_RETURN(const ConvPoolGeometry g, MakeConvPoolGeometry(call, x.dims, w.dims));
  RIDGE_RETURN_IF_ERROR(CheckType(call, 1, "w", {x.dtype, w.dims}, "the dtype of x"));
  if (call.has_input(2)) {
    RIDGE_RETURN_IF_ERROR(CheckType(call, 2, "bias", {x.dtype, {g.conv.outputs()}},
                                    "one number for each output channel"));
  }
  const Dims y = g.pool.output_dims();
  return std::vector<TensorType>{{x.dtype, y}, {DType::kU8, y}};
}

// The convolution with its bias, the comparisons of the pool, and those of relu.
Cost EstimateCost(const OpCall& call) {
  const ConvPoolGeometry g = *MakeConvPoolGeometry(call, call.inputs[0].dims, call.inputs[1].dims);
  const int64_t pooled = g.pool.TapsInside();
  const int64_t bias =
      call.has_input(2) ? g.conv.batch * g.conv.outputs() * g.conv.window.outputs() : 0;
  return StreamingCost(call, g.conv.flops() + bias + pooled +
                                 (call.integer("relu") != 0 ? call.outputs[0].elements() : 0));
}

// As the nodes would do it one after the other: each rounds to the dtype, so ties are the same.
void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const ConvPoolGeometry g = *MakeConvPoolGeometry(call, call.inputs[0].dims, call.inputs[1].dims);
  const TensorType full{call.inputs[0].dtype, g.conv.output_dims()};
  OpCall conv{call.where, call.inputs, {full}, PlainConvAttrs(call)};
  conv.attrs["epilogue"] = "";
  const OpCall pool{call.where, {full}, call.outputs, PlainPoolAttrs()};
  std::vector<double> values(static_cast<size_t>(full.elements()));
  double* results[] = {values.data()};
  RunReference(*FindOp("conv"), conv, in, results);
  const bool relu = call.integer("relu") != 0;
  Tensor rounded({full.dtype, {1}});
  for (double& v : values) {
    StoreFromDouble(full.dtype, rounded.mutable_data(), 0, v);
    v = rounded.at(0);
    if (relu && v <= 0) v = 0;
  }
  const double* pool_inputs[] = {values.data()};
  RunReference(*FindOp("max_pool"), pool, pool_inputs, out);
  if (!relu) return;
  for (int64_t i = 0; i < call.outputs[0].elements(); ++i) {
    if (!(out[0][i] > 0)) out[1][i] = kNoWinner;
  }
}

Axes FindSharedAxes(const OpCall& call) {
  Axes axes = FirstAxis(call);
  axes.push_back(Mapped(call, {Factor::kNone, 0, 0}, 1));
  return axes;
}

}  // namespace

OpDef ConvPoolDef() {
  return {
      .name = "conv_pool",
      .doc =
          "conv of x [B,C,H,W] with w [O,C,KH,KW] and bias [O] at stride 1 with `padding`, then "
          "relu when relu=1, then max_pool with 2x2 windows side by side: y [B,O,PH,PW], and "
          "place, u8: the number of the winning tap, 4 where relu cut the maximum off.",
      .input_names = {"x", "w", "bias?"},
      .output_names = {"y", "place"},
      .attr_defaults = {{"padding", {}}, {"relu", 0}, {"keep_f32", 0}},
      .cost_class = CostClass::kConv,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .recompute = Recompute::kExpensive,
      .axes = FirstAxis,
      .shared_axes = FindSharedAxes,
      .reference = Reference,
  };
}

}  // namespace ridge
