// scatter: x with the rows that indices name replaced by updates, or combined with them.
//
// Gradients are exact where several updates meet: of replacing ones only the last has a gradient,
// the largest (smallest) ones share it equally, and a product is right at its zeros.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ridge/graph/axes.h"
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

Value Scatter(Value x, Value indices, Value updates, const char* reduction) {
  return Op("scatter", {x, indices, updates}, {{"reduction", reduction}});
}
Value Filled(GraphBuilder& b, TensorType type, double value) {
  return Expand(b.Scalar(type.dtype, value), type.dims);
}

// Which updates are the last of their row: bool, indices.dims + 1s that stretch over a row.
Value LastOfRow(GradBuilder& g) {
  GraphBuilder& b = g.b();
  const Value indices = g.x(1);
  const Dims x = g.x().dims(), dims = indices.dims();
  const Value ones = Filled(b, {DType::kI64, {ElementCount(dims)}}, 1);
  const Value number = ReshapeExactly(Op("cumsum", {ones}), dims);  // 1, 2, ...
  const Value last = Scatter(Filled(b, {DType::kI64, {x[0]}}, 0), indices, number, "none");
  Dims rows = dims;
  rows.resize(dims.size() + x.size() - 1, 1);
  return ReshapeExactly(Equal(Gather(last, indices), number), rows);
}

// dx = dy but at replaced rows; the updates get what their row of y got.
void GradientOfReplacing(GradBuilder& g) {
  GraphBuilder& b = g.b();
  const Value indices = g.x(1), dy = g.dy();
  const TensorType updates = g.x(2).type();
  if (g.needs_dx(0)) {
    g.dx() = Scatter(dy, indices, Filled(b, updates, 0), "none");
  }
  if (g.needs_dx(2)) {
    const Value zero = b.Scalar(updates.dtype, 0), rows = Gather(dy, indices);
    g.dx(2) = Where(LastOfRow(g), rows, zero);
  }
}

// The product of the other factors of y at factor v, where `product` is that of the factors that
// are not 0, and `zeros` counts those that are.
Value OtherFactors(Value v, Value product, Value zeros) {
  const Value zero = ScalarLike(v, 0), one = ScalarLike(v, 1);
  const Value is_zero = Equal(v, zero);
  const Value at_zero = Where(Equal(zeros, one), product, zero);
  const Value quotient = product / Where(is_zero, one, v);
  return Where(is_zero, at_zero, Where(Equal(zeros, zero), quotient, zero));
}

void GradientOfProduct(GradBuilder& g) {
  const Value x = g.x(), indices = g.x(1), updates = g.x(2), dy = g.dy();
  const DType dtype = x.dtype();
  const Value zero = ScalarLike(x, 0), one = ScalarLike(x, 1);
  const Value x_zero = Equal(x, zero), u_zero = Equal(updates, zero);
  const Value u_count = Cast(u_zero, dtype);
  const Value zeros = Scatter(Cast(x_zero, dtype), indices, u_count, "add");
  const Value u_factor = Where(u_zero, one, updates);
  const Value product = Scatter(Where(x_zero, one, x), indices, u_factor, "mul");
  if (g.needs_dx(0)) g.dx() = dy * OtherFactors(x, product, zeros);
  if (g.needs_dx(2)) {
    const Value own_zeros = Gather(zeros, indices), own_product = Gather(product, indices);
    const Value others = OtherFactors(updates, own_product, own_zeros);
    g.dx(2) = Gather(dy, indices) * others;
  }
}

// Those that equal y share dy.
void GradientOfExtremum(GradBuilder& g) {
  const Value indices = g.x(1), y = g.y();
  const DType dtype = y.dtype();
  const Value x_chosen = Cast(Equal(g.x(), y), dtype);
  const Value u_chosen = Cast(Equal(g.x(2), Gather(y, indices)), dtype);
  const Value share = g.dy() / Scatter(x_chosen, indices, u_chosen, "add");
  if (g.needs_dx(0)) g.dx() = x_chosen * share;
  if (g.needs_dx(2)) g.dx(2) = u_chosen * Gather(share, indices);
}

void Gradient(GradBuilder& g) {
  const auto& reduction = g.text("reduction");
  if (reduction == "none") return GradientOfReplacing(g);
  if (reduction == "mul") return GradientOfProduct(g);
  if (reduction != "add") return GradientOfExtremum(g);
  g.dx() = g.dy();
  if (g.needs_dx(2)) g.dx(2) = Gather(g.dy(), g.x(1));
}

// The dimensions of a row.
Axes FindSharedAxes(const OpCall& call) {
  Axes axes;
  for (int d = 1; d < call.inputs[0].rank(); ++d)
    axes.push_back(Mapped(call, {d, Factor::kNone, call.inputs[1].rank() + d - 1}, d));
  return axes;
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
      .attr_defaults = {{"reduction", "none"}},
      .cost_class = CostClass::kMove,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .gradient = Gradient,
      .no_gradient_inputs = {1},
      .in_place = {{0, 0}},
      .recompute = Recompute::kCheap,
      .onnx = {"ScatterND", 11, 13, 11, 11},
      .shared_axes = FindSharedAxes,
      .reference = Reference,
  };
}

}  // namespace ridge
