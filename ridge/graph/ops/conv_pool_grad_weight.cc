// conv_pool_grad_weight: dw, and dbias when wanted, of y, place = conv_pool(x, w, bias), from x,
// place and dy; the gradient of the convolution's result, mostly zeros, is never written.
#include "ridge/graph/axes.h"
#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/conv_pool.h"

namespace ridge {
namespace {

// x: float [B,C,H,W].  place: u8 [B,O,PH,PW].  dy: [B,O,PH,PW].  dw: weight_dims.  dbias: [O].
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  const TensorType& x = call.inputs[0];
  const Dims& weight_dims = call.integers("weight_dims");
  RIDGE_RETURN_IF_ERROR(CheckFloat(call, 0, "x"));
  RIDGE_RETURN_IF_ERROR(CheckFlag(call, "bias"));
  RIDGE_RETURN_IF_ERROR(CheckFlag(call, "keep_f32"));
  RIDGE_RETURN_IF_ERROR(CheckShape(call, "weight_dims"));
  RIDGE_ASSIGN_OR_RETURN(const ConvPoolGeometry g, MakeConvPoolGeometry(call, x.dims, weight_dims));
  const Dims pooled = g.pool.output_dims();
  const char* why = "what conv_pool of x by weight_dims gives";
  RIDGE_RETURN_IF_ERROR(CheckType(call, 1, "place", {DType::kU8, pooled}, why));
  RIDGE_RETURN_IF_ERROR(CheckType(call, 2, "dy", {x.dtype, pooled}, why));
  std::vector<TensorType> types = {{x.dtype, weight_dims}};
  if (call.integer("bias") != 0) types.push_back({x.dtype, {g.conv.outputs()}});
  return types;
}

// One multiply-add for each dy and weight of its output channel.
Cost EstimateCost(const OpCall& call) {
  const Dims& w = call.integers("weight_dims");
  const int64_t dy = call.inputs[2].elements();
  return StreamingCost(
      call, SaturatedProduct({2, dy, w[1], w[2], w[3]}) + (call.integer("bias") != 0 ? dy : 0));
}

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const ConvPoolGeometry g =
      *MakeConvPoolGeometry(call, call.inputs[0].dims, call.integers("weight_dims"));
  const TensorType full{call.inputs[0].dtype, g.conv.output_dims()};
  OpCall pool{call.where, {call.inputs[1], call.inputs[2]}, {full}, PlainPoolAttrs()};
  pool.attrs["input_dims"] = full.dims;
  OpCall conv{call.where, {call.inputs[0], full}, call.outputs, PlainConvAttrs(call)};
  conv.attrs["weight_dims"] = call.integers("weight_dims");
  conv.attrs["bias"] = call.integer("bias");
  std::vector<double> spread(static_cast<size_t>(full.elements()));
  double* pool_results[] = {spread.data()};
  RunReference(*FindOp("max_pool_grad"), pool, in.subspan(1), pool_results);
  const double* conv_inputs[] = {in[0], spread.data()};
  RunReference(*FindOp("conv_grad_weight"), conv, conv_inputs, out);
}

Axes FindSharedAxes(const OpCall& call) {
  return {FactorOf(call, {0, 0, 0}, {}, Factor::Over::kSum),
          FactorOf(call, {Factor::kNone, 1, 1}, {0, 0}), FactorOf(call, {1}, {1})};
}

}  // namespace

OpDef ConvPoolGradWeightDef() {
  return {
      .name = "conv_pool_grad_weight",
      .doc =
          "The gradient of w in y, place = conv_pool(x, w, bias), dw [O,C,KH,KW] = `weight_dims`, "
          "from x [B,C,H,W], place and dy [B,O,PH,PW]; with bias=1 also dbias [O]. A place that "
          "is no tap drops its dy. `padding` is that of conv_pool.",
      .input_names = {"x", "place", "dy"},
      .output_names = {"dw", "dbias"},
      .attr_defaults = {{"weight_dims", {}}, {"padding", {}}, {"bias", 0}, {"keep_f32", 0}},
      .required_attrs = {"weight_dims"},
      .cost_class = CostClass::kConv,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .recompute = Recompute::kExpensive,
      .shared_axes = FindSharedAxes,
      .dims_attr = "weight_dims",
      .reference = Reference,
  };
}

}  // namespace ridge
