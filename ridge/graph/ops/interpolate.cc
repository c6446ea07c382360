// interpolate: y[o] = weighted sum of some places of x, along one axis.
//
// Resizing in any mode is such a sum, axis after axis: the weights and places depend on the extents
// alone.  They form a sparse matrix by rows, so the gradient is interpolate by its transpose.
#include <fmt/format.h>

#include <algorithm>

#include "ridge/graph/axes.h"
#include "ridge/graph/grad_builder.h"
#include "ridge/graph/ops/shared/axis_view.h"
#include "ridge/graph/ops/shared/checks.h"

namespace ridge {
namespace {

const std::vector<double>& Weights(const AttrMap& attrs) {
  return std::get<std::vector<double>>(attrs.at("weights"));
}

Status CheckTable(const OpCall& call, int64_t extent) {
  const std::vector<int64_t>&starts = call.integers("starts"), &places = call.integers("places");
  if (starts.empty() || starts.front() != 0 || !std::is_sorted(starts.begin(), starts.end()) ||
      starts.back() != static_cast<int64_t>(places.size()) ||
      places.size() != Weights(call.attrs).size()) {
    return CallError(
        call, fmt::format("starts has {} entries, places {}, weights {}; starts must go from 0 up "
                          "to the number of places and of weights",
                          starts.size(), places.size(), Weights(call.attrs).size()));
  }
  for (const int64_t place : places) {
    if (place >= 0 && place < extent) continue;
    return CallError(call, fmt::format("places has {}; it must be from 0 to {}, the extent of x "
                                       "along the axis less 1",
                                       place, extent - 1));
  }
  return Status();
}

// x: float, rank >= 1.  y: as x, with as many elements along `axis` as the table has rows.
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  RIDGE_RETURN_IF_ERROR(CheckFloat(call, 0, "x"));
  RIDGE_ASSIGN_OR_RETURN(const int axis, CheckAxis(call, "x"));
  TensorType y = call.inputs[0];
  int64_t& extent = y.dims[static_cast<size_t>(axis)];
  RIDGE_RETURN_IF_ERROR(CheckTable(call, extent));
  extent = static_cast<int64_t>(call.integers("starts").size()) - 1;
  return std::vector<TensorType>{y};
}

// One multiply-add for each place.
Cost EstimateCost(const OpCall& call) {
  const AxisView x = ViewAxis(call.inputs[0].dims, CallAxis(call));
  return {.flops = 2 * x.outer * x.inner * static_cast<int64_t>(call.integers("places").size()),
          .bytes_read = call.inputs[0].bytes(),
          .bytes_written = call.outputs[0].bytes()};
}

// dx[p] = sum of weight * dy[o] over the rows o that have place p, in their order.
void Gradient(GradBuilder& g) {
  const std::vector<int64_t>&starts = g.integers("starts"), &places = g.integers("places");
  const std::vector<double>& weights = Weights(g.attrs());
  const Dims& dims = g.x().dims();
  const Result<int> axis =
      NormalizeAxis(g.integer("axis"), static_cast<int>(dims.size()), "interpolate");
  std::vector<int64_t> ends(static_cast<size_t>(dims[static_cast<size_t>(*axis)]) + 1, 0);
  for (const int64_t place : places) ++ends[static_cast<size_t>(place) + 1];
  for (size_t p = 1; p < ends.size(); ++p) ends[p] += ends[p - 1];
  const std::vector<int64_t> transposed_starts = ends;
  std::vector<int64_t> rows(places.size());
  std::vector<double> transposed_weights(places.size());
  for (size_t o = 0; o + 1 < starts.size(); ++o) {
    for (auto k = static_cast<size_t>(starts[o]); k < static_cast<size_t>(starts[o + 1]); ++k) {
      const auto to = static_cast<size_t>(ends[static_cast<size_t>(places[k])]++);
      rows[to] = static_cast<int64_t>(o);
      transposed_weights[to] = weights[k];
    }
  }
  g.dx() = Op("interpolate", {g.dy()},
              {{"axis", g.integer("axis")},
               {"starts", transposed_starts},
               {"places", rows},
               {"weights", transposed_weights}});
}

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const std::vector<int64_t>&starts = call.integers("starts"), &places = call.integers("places");
  const std::vector<double>& weights = Weights(call.attrs);
  const AxisView x = ViewAxis(call.inputs[0].dims, CallAxis(call));
  const auto rows = static_cast<int64_t>(starts.size()) - 1;
  for (int64_t row = 0; row < x.outer * rows; ++row) {
    const auto o = static_cast<size_t>(row % rows);
    double* y = out[0] + row * x.inner;
    std::fill_n(y, x.inner, 0.0);
    for (auto k = static_cast<size_t>(starts[o]); k < static_cast<size_t>(starts[o + 1]); ++k) {
      const double* from = in[0] + x.Index(row / rows, places[k], 0);
      for (int64_t i = 0; i < x.inner; ++i) y[i] += weights[k] * from[i];
    }
  }
}

}  // namespace

OpDef InterpolateDef() {
  return {
      .name = "interpolate",
      .doc =
          "Weighted sums along `axis`: y[.., o, ..] = the sum over k from starts[o] up to "
          "starts[o+1] of weights[k] * x[.., places[k], ..]; y has one row less than starts has "
          "entries.",
      .input_names = {"x"},
      .output_names = {"y"},
      .attr_defaults = {{"axis", 0},
                        {"starts", {}},
                        {"places", {}},
                        {"weights", std::vector<double>{}}},
      .required_attrs = {"starts", "places", "weights"},
      .cost_class = CostClass::kMove,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .gradient = Gradient,
      .recompute = Recompute::kCheap,
      .axes = AxesBesidesAttr,
      .reference = Reference,
  };
}

}  // namespace ridge
