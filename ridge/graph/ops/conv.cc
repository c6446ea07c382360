// conv: y[b,o,i,j] = bias[o] + sum over c,u,v of x[b, c, i*s+u*d-p, j*s+v*d-p] * w[o,c,u,v].
//
// With one or three spatial dimensions as with two.  As in every framework this is a
// cross-correlation: the kernel is not flipped.
#include "ridge/graph/ops/shared/conv.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "ridge/graph/axes.h"
#include "ridge/graph/grad_builder.h"
#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/epilogue.h"
#include "ridge/graph/ops/shared/reduce.h"

namespace ridge {
namespace {

constexpr size_t kFirstExtra = 3;

// x: float [B,C,H,W].  w: [O,C/groups,KH,KW].  bias: [O].  y: [B,O,OH,OW], all of one dtype, or
// bias and y of out_dtype; the bias of a short y may be f32.
// Likewise [B,C,W] with [O,C/groups,KW] and [B,C,D,H,W] with [O,C/groups,KD,KH,KW].
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  const TensorType &x = call.inputs[0], &w = call.inputs[1];
  RIDGE_RETURN_IF_ERROR(CheckFloat(call, 0, "x"));
  RIDGE_ASSIGN_OR_RETURN(const ConvGeometry g, MakeConvGeometry(call, x.dims, w.dims));
  RIDGE_RETURN_IF_ERROR(CheckType(call, 1, "w", {x.dtype, w.dims}, "the dtype of x"));
  RIDGE_ASSIGN_OR_RETURN(const DType dtype, ProductDType(call));
  if (call.has_input(2)) {
    RIDGE_RETURN_IF_ERROR(CheckType(call, 2, "bias", {BiasDType(call, 2, dtype), {g.outputs()}},
                                    "one number for each output channel"));
  }
  const TensorType y{dtype, g.output_dims()};
  RIDGE_RETURN_IF_ERROR(CheckEpilogue(call, kFirstExtra, y));
  return std::vector<TensorType>{y};
}

// Every operand moves once; the bias is one add for each output.
Cost EstimateCost(const OpCall& call) {
  const TensorType& out = call.outputs[0];
  const int64_t bias = call.has_input(2) ? out.elements() : 0;
  return StreamingCost(call, ConvGeometryOf(call).flops() + EpilogueFlops(call, out) + bias);
}

// dx = conv_grad_input(dy, w); dw, dbias = conv_grad_weight(x, dy).
void Gradient(GradBuilder& g) {
  if (RefusesEpilogueGradient(g, "conv")) return;
  const Value x = g.x(), w = g.x(1);
  const Value dy = Cast(g.dy(), x.dtype());
  if (g.needs_dx(0)) {
    AttrMap attrs = PickAttrs(g.attrs(), kConvAttrs);
    attrs["input_dims"] = x.dims();
    g.dx() = Op("conv_grad_input", {dy, w}, attrs);
  }
  if (g.needs_dx(1)) {
    AttrMap attrs = PickAttrs(g.attrs(), kConvAttrs);
    attrs["weight_dims"] = w.dims();
    attrs["bias"] = g.needs_dx(2);
    // The sum of a wide bias is not rounded to the type of short operands on the way.
    const DType bias = g.needs_dx(2) ? g.x(2).dtype() : w.dtype();
    if (BytesPerElement(bias) > BytesPerElement(w.dtype()))
      attrs["out_dtype"] = std::string(DTypeName(bias));
    const std::vector<Value> grads = OpOutputs("conv_grad_weight", {x, dy}, attrs);
    g.dx(1) = Cast(grads[0], w.dtype());
    if (g.needs_dx(2)) g.dx(2) = Cast(grads[1], bias);
  } else if (g.needs_dx(2)) {
    std::vector<int64_t> axes(dy.dims().size() - 1);  // all but the channels
    std::iota(axes.begin(), axes.end(), int64_t{1});
    axes[0] = 0;
    g.dx(2) = SumAs(g.dy(), axes, g.x(2).dtype());
  }
}

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const ConvGeometry g = ConvGeometryOf(call);
  const double *x = in[0], *w = in[1];
  const double* bias = call.has_input(2) ? in[2] : nullptr;
  double* y = out[0];
  const int64_t plane = g.window.outputs();
  for (int64_t p = 0; p < g.batch * g.outputs(); ++p) {
    std::fill_n(y + p * plane, plane, bias == nullptr ? 0.0 : bias[p % g.outputs()]);
  }
  ForEachConvRow(g, [&](const ConvRow& row) {
    for (int64_t i = 0; i < row.count; ++i) y[row.y + i] += x[row.x + i * row.x_step] * w[row.w];
  });
  ApplyEpilogue(call, in, kFirstExtra, y);
}

// Also output channels, and input channels (summed) or groups.
Axes FindSharedAxes(const OpCall& call) {
  Axes axes = FirstAxisWithExtras(call, kFirstExtra);
  Factor outputs = FactorOf(call, {Factor::kNone, 0, 0}, {1});
  for (size_t i = kFirstExtra; i < call.inputs.size(); ++i) outputs.inputs[i] = 1;
  if (call.integer("groups") != 1) {
    outputs.inputs[0] = 1;
    outputs.divided_attr = "groups";
  } else if (call.inputs.size() <= kFirstExtra && !call.has_input(2) &&
             call.text("epilogue").empty()) {
    axes.push_back(FactorOf(call, {1, 1}, {}, Factor::Over::kSum));
  }
  axes.push_back(std::move(outputs));
  return axes;
}

}  // namespace

OpDef ConvDef() {
  return {
      .name = "conv",
      .doc =
          "Convolves x [B,C,H,W] with w [O,C/groups,KH,KW] (not flipped) and adds bias [O]: "
          "y [B,O,OH,OW], OH = floor((H + top + bottom - dilation*(KH-1) - 1) / stride) + 1; "
          "x may also have one spatial dimension [B,C,W] or three [B,C,D,H,W]. `stride` and "
          "`dilation` have one number for each spatial dimension, `padding` (with zeros) the "
          "numbers before each, then those after each; empty means ones, ones, zeros. "
          "`epilogue` steps are applied to y; inputs after bias belong to it. "
          "extra and y are of `out_dtype`, empty: that of x and w; bias is too, or f32. With "
          "keep_f32=1 mixed precision leaves it and its gradients in f32; with narrow_result=1 it "
          "may store y in 16 bits though an output is computed from it.",
      .input_names = {"x", "w", "bias?", "extra...?"},
      .output_names = {"y"},
      .attr_defaults = {{"stride", {}},
                        {"padding", {}},
                        {"dilation", {}},
                        {"groups", 1},
                        {"keep_f32", 0},
                        {"narrow_result", 0},
                        {"out_dtype", ""},
                        {"epilogue", ""}},
      .cost_class = CostClass::kConv,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .gradient = Gradient,
      .recompute = Recompute::kExpensive,
      .onnx = {"Conv", 1, 22},
      .axes = [](const OpCall& call) { return FirstAxisWithExtras(call, kFirstExtra); },
      .shared_axes = FindSharedAxes,
      .reference = Reference,
  };
}

}  // namespace ridge
