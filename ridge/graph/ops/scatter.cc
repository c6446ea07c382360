// scatter: x with the rows that indices name replaced by updates, or combined with them.
//
// Gradients are exact where several updates meet: of replacing ones only the last has a gradient,
// the largest (smallest) ones share it equally, and a product is right at its zeros.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/gather.h"
#include "ridge/graph/ops/shared/index_map.h"
#include "ridge/graph/ops/shared/reduce.h"

namespace ridge {
namespace {

Status CheckReduction(const OpCall& call) {
  const std::string& reduction = call.text("reduction");
  for (const char* known : {"none", "add", "mul", "max", "min"}) {
    if (reduction == known) {
      if (reduction == "none" || call.inputs[0].dtype != DType::kBool) return Status();
      return CallError(call, fmt::format("x is {}; bool can only be replaced, reduction=\"none\"; "
                                         "hint: cast it",
                                         TypeToString(call.inputs[0])));
    }
  }
  return CallError(
      call, fmt::format("reduction is \"{}\"; it must be none, add, mul, max or min", reduction));
}

// x: rank >= 1.  indices: i64 or i32, any shape.  updates: indices.dims + x.dims[1..].  y: as x.
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  const TensorType &x = call.inputs[0], &indices = call.inputs[1];
  RIDGE_RETURN_IF_ERROR(CheckIndex(call, 1, "indices"));
  if (x.rank() == 0) {
    return CallError(call,
                     fmt::format("x is {}; it must have at least 1 dimension", TypeToString(x)));
  }
  RIDGE_RETURN_IF_ERROR(CheckReduction(call));
  RIDGE_RETURN_IF_ERROR(CheckType(call, 2, "updates",
                                  {x.dtype, GatherDims(x.dims, 0, indices.dims)},
                                  "what gather of x by indices gives"));
  return std::vector<TensorType>{x};
}

Cost EstimateCost(const OpCall& call) {
  const TensorType &x = call.inputs[0], &updates = call.inputs[2];
  const bool combines = call.text("reduction") != "none";
  return {.flops = combines ? updates.elements() : 0,
          .bytes_read = x.bytes() + call.inputs[1].bytes() + (combines ? 2 : 1) * updates.bytes(),
          .bytes_written = x.bytes() + updates.bytes()};
}

using Combine = double (*)(double y, double update);

// NaN wins over any number.
Combine CombineOf(const std::string& reduction) {
  if (reduction == "add") return [](double y, double u) { return y + u; };
  if (reduction == "mul") return [](double y, double u) { return y * u; };
  if (reduction == "max") return [](double y, double u) { return u > y || std::isnan(u) ? u : y; };
  if (reduction == "min") return [](double y, double u) { return u < y || std::isnan(u) ? u : y; };
  return [](double, double u) { return u; };
}

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const Combine combine = CombineOf(call.text("reduction"));
  const AxisView view = ViewAxis(call.inputs[0].dims, 0);
  std::copy_n(in[0], call.outputs[0].elements(), out[0]);
  for (int64_t n = 0; n < call.inputs[1].elements(); ++n) {
    const int64_t row = PlaceOfIndex(in[1][n], view.extent);
    if (row < 0) continue;
    double* y = out[0] + row * view.inner;
    const double* update = in[2] + n * view.inner;
    for (int64_t i = 0; i < view.inner; ++i) y[i] = combine(y[i], update[i]);
  }
}

Value Scatter(GraphBuilder& b, Value x, Value indices, Value updates, const char* reduction) {
  return b.Op("scatter", {x, indices, updates}, {{"reduction", std::string(reduction)}});
}
Value Gather(GraphBuilder& b, Value x, Value indices) { return b.Op("gather", {x, indices}); }
Value Filled(GraphBuilder& b, TensorType type, double value) {
  return b.Expand(b.Scalar(type.dtype, value), type.dims);
}

// Which updates are the last of their row: bool, indices.dims + 1s that stretch over a row.
Value LastOfRow(GradBuilder& g) {
  GraphBuilder& b = g.b();
  const Value indices = g.input(1);
  const Dims x = b.dims(g.input(0)), dims = b.dims(indices);
  const Value ones = Filled(b, {DType::kI64, {ElementCount(dims)}}, 1);
  const Value number = ReshapeExactly(b, b.Op("cumsum", {ones}), dims);  // 1, 2, ...
  const Value last = Scatter(b, Filled(b, {DType::kI64, {x[0]}}, 0), indices, number, "none");
  Dims rows = dims;
  rows.resize(dims.size() + x.size() - 1, 1);
  return ReshapeExactly(b, b.Op("equal", {Gather(b, last, indices), number}), rows);
}

// dx = dy but at replaced rows; the updates get what their row of y got.
void GradientOfReplacing(GradBuilder& g) {
  GraphBuilder& b = g.b();
  const Value indices = g.input(1), dy = g.output_grad(0);
  const TensorType updates = b.type(g.input(2));
  if (g.needs_grad(0)) {
    g.set_input_grad(0, Scatter(b, dy, indices, Filled(b, updates, 0), "none"));
  }
  if (g.needs_grad(2)) {
    g.set_input_grad(2, b.Where(LastOfRow(g), Gather(b, dy, indices), b.Scalar(updates.dtype, 0)));
  }
}

// The product of the other factors of y at factor v, where `product` is that of the factors that
// are not 0, and `zeros` counts those that are.
Value OtherFactors(GraphBuilder& b, Value v, Value product, Value zeros) {
  const DType dtype = b.type(v).dtype;
  const Value zero = b.Scalar(dtype, 0), one = b.Scalar(dtype, 1);
  const Value is_zero = b.Op("equal", {v, zero});
  const Value at_zero = b.Where(b.Op("equal", {zeros, one}), product, zero);
  const Value quotient = b.Div(product, b.Where(is_zero, one, v));
  return b.Where(is_zero, at_zero, b.Where(b.Op("equal", {zeros, zero}), quotient, zero));
}

void GradientOfProduct(GradBuilder& g) {
  GraphBuilder& b = g.b();
  const Value x = g.input(0), indices = g.input(1), updates = g.input(2), dy = g.output_grad(0);
  const DType dtype = b.type(x).dtype;
  const Value zero = b.Scalar(dtype, 0), one = b.Scalar(dtype, 1);
  const Value x_zero = b.Op("equal", {x, zero}), u_zero = b.Op("equal", {updates, zero});
  const Value zeros = Scatter(b, b.Cast(x_zero, dtype), indices, b.Cast(u_zero, dtype), "add");
  const Value product =
      Scatter(b, b.Where(x_zero, one, x), indices, b.Where(u_zero, one, updates), "mul");
  if (g.needs_grad(0)) g.set_input_grad(0, b.Mul(dy, OtherFactors(b, x, product, zeros)));
  if (g.needs_grad(2)) {
    const Value others =
        OtherFactors(b, updates, Gather(b, product, indices), Gather(b, zeros, indices));
    g.set_input_grad(2, b.Mul(Gather(b, dy, indices), others));
  }
}

// Those that equal y share dy.
void GradientOfExtremum(GradBuilder& g) {
  GraphBuilder& b = g.b();
  const Value indices = g.input(1), y = g.output(0);
  const DType dtype = b.type(y).dtype;
  const Value x_chosen = b.Cast(b.Op("equal", {g.input(0), y}), dtype);
  const Value u_chosen = b.Cast(b.Op("equal", {g.input(2), Gather(b, y, indices)}), dtype);
  const Value share = b.Div(g.output_grad(0), Scatter(b, x_chosen, indices, u_chosen, "add"));
  if (g.needs_grad(0)) g.set_input_grad(0, b.Mul(x_chosen, share));
  if (g.needs_grad(2)) g.set_input_grad(2, b.Mul(u_chosen, Gather(b, share, indices)));
}

void Gradient(GradBuilder& g) {
  const auto& reduction = std::get<std::string>(g.attrs().at("reduction"));
  if (reduction == "none") return GradientOfReplacing(g);
  if (reduction == "mul") return GradientOfProduct(g);
  if (reduction != "add") return GradientOfExtremum(g);
  g.set_input_grad(0, g.output_grad(0));
  if (g.needs_grad(2)) g.set_input_grad(2, Gather(g.b(), g.output_grad(0), g.input(1)));
}

}  // namespace

OpDef ScatterDef() {
  return {
      .name = "scatter",
      .doc =
          "y = x [N, ..] with y[indices[i..]] replaced by updates[i..] (the last one stays), or "
          "combined with them by `reduction`: none, add, mul, max, min. Negative indices count "
          "from the end; an index out of range is skipped.",
      .input_names = {"x", "indices", "updates"},
      .output_names = {"y"},
      .attr_defaults = {{"reduction", std::string("none")}},
      .cost_class = CostClass::kMove,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .gradient = Gradient,
      .no_gradient_inputs = {1},
      .in_place = {{0, 0}},
      .recompute = Recompute::kCheap,
      .onnx = {"ScatterND", 11, 13, 11, 11},
      .reference = Reference,
  };
}

}  // namespace ridge
