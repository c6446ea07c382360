// max_roi_pool: y = the largest element of x in each bin of each region.
//
// The places of the winners are an output: the gradient is a scatter_add of dy there.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ridge/graph/grad_builder.h"
#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/reduce.h"

namespace ridge {
namespace {

constexpr int64_t kMostBins = int64_t{1} << 20;

// x: float [B,C,H,W].  rois: [R,5].  y: [R,C,OH,OW].  place: i64, as y.
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  const TensorType& x = call.inputs[0];
  RIDGE_RETURN_IF_ERROR(CheckFloat(call, 0, "x"));
  if (x.rank() != 4) {
    return CallError(
        call, fmt::format("x is {}; it must be [batch, channels, height, width]", TypeToString(x)));
  }
  const Dims& r = call.inputs[1].dims;
  const int64_t count = r.empty() ? 0 : r[0];
  RIDGE_RETURN_IF_ERROR(
      CheckType(call, 1, "rois", {x.dtype, {count, 5}}, "batch index, x1, y1, x2, y2 each"));
  RIDGE_RETURN_IF_ERROR(CheckIntegers(call, "output", 2, 1, kMostBins));
  if (!std::isfinite(call.number("spatial_scale")))
    return CallError(call, fmt::format("spatial_scale is {}", call.number("spatial_scale")));
  const Dims y = {count, x.dims[1], call.integers("output")[0], call.integers("output")[1]};
  return std::vector<TensorType>{{x.dtype, y}, {DType::kI64, y}};
}

void Gradient(GradBuilder& g) {
  const Dims x = g.x().dims();
  const Value flat = Op("scatter_add", {g.y(1), g.dy()}, {{"dims", Dims{ElementCount(x)}}});
  g.dx() = ReshapeExactly(flat, x);
}

// The places of bin `bin` of a region [from, to] that has `bins`, inside [0, extent).
struct BinRange {
  int64_t first, last;
};
BinRange RangeOf(double from, double to, double scale, int64_t bin, int64_t bins, int64_t extent) {
  const double start = std::round(from * scale), end = std::round(to * scale);
  const double size = std::max(end - start + 1, 1.0) / static_cast<double>(bins);
  const double first = std::floor(static_cast<double>(bin) * size) + start;
  const double last = std::ceil(static_cast<double>(bin + 1) * size) + start;
  const auto inside = [&](double v) {  // NaN has no places
    return static_cast<int64_t>(std::clamp(v, 0.0, static_cast<double>(extent)));
  };
  if (!(first <= last)) return {0, 0};
  return {inside(first), inside(last)};
}

// Of one bin in one plane of x: the first largest element and its place; 0 and `none` when the bin
// is empty.
void LargestIn(const double* plane, int64_t width, BinRange rows, BinRange columns, double* value,
               double* place) {
  bool found = false;
  const double first = *place;
  for (int64_t y = rows.first; y < rows.last; ++y) {
    for (int64_t x = columns.first; x < columns.last; ++x) {
      const double v = plane[y * width + x];
      if (found && !(v > *value) && !(std::isnan(v) && !std::isnan(*value))) continue;
      found = true;
      *value = v;
      *place = first + static_cast<double>(y * width + x);
    }
  }
  if (!found) *place = -1;
}

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const Dims &x = call.inputs[0].dims, &y = call.outputs[0].dims;
  const double scale = call.number("spatial_scale");
  const int64_t pixels = x[2] * x[3];
  const auto none = static_cast<double>(call.inputs[0].elements());  // scatter_add leaves it out
  for (int64_t at = 0; at < call.outputs[0].elements(); ++at) {
    const int64_t bin_x = at % y[3], bin_y = at / y[3] % y[2], c = at / (y[3] * y[2]) % y[1];
    const double* roi = in[1] + at / (y[3] * y[2] * y[1]) * 5;
    out[0][at] = 0;
    out[1][at] = none;
    if (!(roi[0] >= 0 && roi[0] < static_cast<double>(x[0]))) continue;
    const int64_t plane = (static_cast<int64_t>(roi[0]) * x[1] + c) * pixels;
    out[1][at] = static_cast<double>(plane);
    LargestIn(in[0] + plane, x[3], RangeOf(roi[2], roi[4], scale, bin_y, y[2], x[2]),
              RangeOf(roi[1], roi[3], scale, bin_x, y[3], x[3]), &out[0][at], &out[1][at]);
    if (out[1][at] < 0) out[1][at] = none;
  }
}

}  // namespace

OpDef MaxRoiPoolDef() {
  return {
      .name = "max_roi_pool",
      .doc =
          "For each of rois [R,5] (batch index, x1, y1, x2, y2; times spatial_scale, rounded, both "
          "ends inside) a grid of `output` bins of x [B,C,H,W]: y [R,C,OH,OW], the largest element "
          "in each, and its row-major place in x. A bin without elements gives 0 and the number "
          "of elements of x; no gradient flows to rois.",
      .input_names = {"x", "rois"},
      .output_names = {"y", "place"},
      .attr_defaults = {{"output", {}}, {"spatial_scale", 1.0}},
      .required_attrs = {"output"},
      .cost_class = CostClass::kPool,
      .infer_types = InferTypes,
      .gradient = Gradient,
      .no_gradient_inputs = {1},
      .recompute = Recompute::kCheap,
      .onnx = {"MaxRoiPool", 1, 22},
      .reference = Reference,
  };
}

}  // namespace ridge
