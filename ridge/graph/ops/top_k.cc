// top_k: the k largest (smallest) elements along one axis, sorted, and where they were.
//
// Equal elements keep their order: the lower index comes first.  NaN counts as largest.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ridge/graph/axes.h"
#include "ridge/graph/grad_builder.h"
#include "ridge/graph/ops/shared/axis_view.h"
#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/elementwise.h"
#include "ridge/graph/ops/shared/reduce.h"

namespace ridge {
namespace {

Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  TensorType values = call.inputs[0];
  RIDGE_RETURN_IF_ERROR(CheckOperand(call, "x", values, Operands::kNumber));
  RIDGE_RETURN_IF_ERROR(CheckFlag(call, "largest"));
  RIDGE_ASSIGN_OR_RETURN(const int axis, CheckAxis(call, "x"));
  const int64_t k = call.integer("k");
  int64_t& extent = values.dims[static_cast<size_t>(axis)];
  if (k < 0 || k > extent) {
    return CallError(call, fmt::format("k is {}, x is {}; k must be in [0, {}], the extent of axis "
                                       "{}",
                                       k, TypeToString(values), extent, axis));
  }
  extent = k;
  return std::vector<TensorType>{values, {DType::kI64, values.dims}};
}

// A heap of k elements: about log2(k) comparisons an element.
Cost EstimateCost(const OpCall& call) {
  int64_t depth = 1;
  for (int64_t k = call.integer("k"); k > 1; k /= 2) ++depth;
  return {.flops = call.inputs[0].elements() * depth,
          .bytes_read = call.inputs[0].bytes(),
          .bytes_written = call.outputs[0].bytes() + call.outputs[1].bytes()};
}

// Whether a comes before b.
bool Before(double a, double b, bool largest) {
  if (std::isnan(a) || std::isnan(b)) return largest ? !std::isnan(b) : !std::isnan(a);
  return largest ? a > b : a < b;
}

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const int axis = CallAxis(call);
  const AxisView from = ViewAxis(call.inputs[0].dims, axis);
  const AxisView to = ViewAxis(call.outputs[0].dims, axis);
  const bool largest = call.integer("largest") != 0;
  std::vector<int64_t> order(static_cast<size_t>(from.extent));
  for (int64_t line = 0; line < from.outer * from.inner; ++line) {
    const int64_t o = line / from.inner, i = line % from.inner;
    const auto at = [&](int64_t k) { return in[0][from.Index(o, k, i)]; };
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t p, int64_t q) {
      const double a = at(p), b = at(q);
      return std::isnan(a) && std::isnan(b) ? false : Before(a, b, largest);
    });
    for (int64_t k = 0; k < to.extent; ++k) {
      const int64_t chosen = order[static_cast<size_t>(k)];
      out[0][to.Index(o, k, i)] = at(chosen);
      out[1][to.Index(o, k, i)] = static_cast<double>(chosen);
    }
  }
}

// dx = zeros with dy where the elements were.
void Gradient(GradBuilder& g) {
  GraphBuilder& b = g.b();
  const Dims dims = g.x().dims();
  const Value places = Op("element_index", {g.y(1)}, {{"dims", dims}, {"axis", g.integer("axis")}});
  if (!b.ok()) return;
  const Dims flat_k{ElementCount(places.dims())}, flat{ElementCount(dims)};
  const Value dx =
      Op("scatter_add", {ReshapeExactly(places, flat_k), ReshapeExactly(g.dy(), flat_k)},
         {{"dims", flat}});
  g.dx() = ReshapeExactly(dx, dims);
}

}  // namespace

OpDef TopKDef() {
  return {
      .name = "top_k",
      .doc =
          "values, indices (i64) = the k largest elements of x along `axis`, or the smallest with "
          "largest=0, best first; of equal ones the lower index comes first; NaN counts as "
          "largest.",
      .input_names = {"x"},
      .output_names = {"values", "indices"},
      .attr_defaults = {{"k", 1}, {"axis", -1}, {"largest", 1}},
      .required_attrs = {"k"},
      .cost_class = CostClass::kReduce,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .gradient = Gradient,
      .onnx = {"TopK", 11, 24, 11, 11},
      .axes = AxesBesidesAttr,
      .reference = Reference,
  };
}

}  // namespace ridge
