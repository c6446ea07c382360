// roi_align_grad: dx, and drois when wanted, of y = roi_align(x, rois, batch_indices), from dy.
#include <fmt/format.h>

#include "ridge/graph/axes.h"
#include "ridge/graph/grad_builder.h"
#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/roi.h"

namespace ridge {
namespace {

// rois: [R,4].  batch_indices: [R].  dy: float [R,C,OH,OW].  dx, and x where it is needed:
// [B,C,H,W] = input_dims.  drois: [R,4].
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  const Dims& input_dims = call.integers("input_dims");
  const DType dtype = call.inputs[2].dtype;
  RIDGE_RETURN_IF_ERROR(CheckFloat(call, 2, "dy"));
  RIDGE_RETURN_IF_ERROR(CheckShape(call, "input_dims"));
  RIDGE_RETURN_IF_ERROR(CheckRois(call, dtype, input_dims, 0, 1));
  const std::vector<int64_t>& output = call.integers("output");
  const Dims y = {call.inputs[0].dims[0], input_dims[1], output[0], output[1]};
  RIDGE_RETURN_IF_ERROR(CheckType(call, 2, "dy", {dtype, y}, "what roi_align of input_dims gives"));
  RIDGE_RETURN_IF_ERROR(CheckFlag(call, "rois_gradient"));
  const bool drois = call.integer("rois_gradient") != 0;
  const bool needs_x = call.text("mode") == "max" || drois;
  if (call.has_input(3) != needs_x) {
    return CallError(call, "x must be given with mode=\"max\" or rois_gradient=1, and not without");
  }
  if (needs_x) RIDGE_RETURN_IF_ERROR(CheckType(call, 3, "x", {dtype, input_dims}, "input_dims"));
  std::vector<TensorType> types = {{dtype, input_dims}};
  if (drois) types.push_back(call.inputs[0]);
  return types;
}

Cost EstimateCost(const OpCall& call) {
  const int64_t ratio = call.integer("sampling_ratio");
  const int64_t samples = ratio > 0 ? ratio * ratio : 4;
  return {.flops = 8 * samples * call.inputs[2].elements(),
          .bytes_read = call.inputs[2].bytes() + (call.has_input(3) ? call.inputs[3].bytes() : 0),
          .bytes_written = call.outputs[0].bytes()};
}

// dx is linear in dy, and by mean it depends on nothing else but the regions.
void Gradient(GradBuilder& g) {
  AttrMap attrs = g.attrs();
  const bool max = attrs.text("mode") == "max";
  if (max || g.integer("rois_gradient") != 0 || g.needs_dx(0)) {
    g.b().Fail(Status(ErrorCode::kUnsupported,
                      "roi_align_grad: has a gradient for dy with mode=\"avg\" and "
                      "rois_gradient=0 alone"));
    return;
  }
  attrs.erase("input_dims");
  attrs.erase("rois_gradient");
  g.dx(2) = Op("roi_align", {g.dy(), g.x(), g.x(1)}, attrs);
}

// One sample's neighbour i in y += .. * weight * x: what its weight gives the region.
// point = start + at * (end - start) along each axis, in pixels; or start + at, of the least size.
void AddToRoi(const RoiGeometry& g, const RoiSample& sample, int i, double dy_times_x,
              const bool* follows_end, double* drois) {
  const double to_x = dy_times_x * sample.weight_dx[i] * g.spatial_scale,
               to_y = dy_times_x * sample.weight_dy[i] * g.spatial_scale;
  drois[0] += to_x * (follows_end[0] ? 1 - sample.at_x : 1);
  drois[1] += to_y * (follows_end[1] ? 1 - sample.at_y : 1);
  if (follows_end[0]) drois[2] += to_x * sample.at_x;
  if (follows_end[1]) drois[3] += to_y * sample.at_y;
}

void ReferenceRois(const OpCall& call, std::span<const double* const> in, double* drois) {
  const RoiGeometry g = RoiGeometryOf(call, call.integers("input_dims"), call.inputs[0].dims[0]);
  std::fill_n(drois, call.outputs[1].elements(), 0.0);
  const int64_t outputs = g.channels * g.out_height * g.out_width;
  ForEachRoiBin(g, in[0], in[1], [&](int64_t y, int64_t plane, const auto& samples, double count) {
    const double *roi = in[0] + y / outputs * 4, *x = in[3] + plane;
    double* to = drois + y / outputs * 4;
    const bool follows_end[2] = {RoiAxisOf(g, roi[0], roi[2], g.out_width, g.width).follows_end,
                                 RoiAxisOf(g, roi[1], roi[3], g.out_height, g.height).follows_end};
    if (g.max) {
      const RoiWinner w = LargestOf(samples, x);
      if (w.sample != nullptr)
        AddToRoi(g, *w.sample, w.neighbour, in[2][y] * x[w.place], follows_end, to);
      return;
    }
    const double share = in[2][y] / std::max(1.0, count);
    for (const RoiSample& sample : samples) {
      for (int i = 0; i < 4; ++i)
        AddToRoi(g, sample, i, share * x[sample.place[i]], follows_end, to);
    }
  });
}

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  if (out.size() > 1) ReferenceRois(call, in, out[1]);
  const RoiGeometry g = RoiGeometryOf(call, call.integers("input_dims"), call.inputs[0].dims[0]);
  std::fill_n(out[0], call.outputs[0].elements(), 0.0);
  ForEachRoiBin(g, in[0], in[1], [&](int64_t y, int64_t plane, const auto& samples, double count) {
    double* dx = out[0] + plane;
    if (g.max) {
      const RoiWinner winner = LargestOf(samples, in[3] + plane);
      if (winner.place >= 0) dx[winner.place] += winner.weight * in[2][y];
      return;
    }
    const double share = in[2][y] / std::max(1.0, count);
    for (const RoiSample& sample : samples) {
      for (int i = 0; i < 4; ++i) dx[sample.place[i]] += sample.weight[i] * share;
    }
  });
}

// Regions, over which dx is summed, and channels, over which drois is.
Axes FindSharedAxes(const OpCall& call) {
  return {FactorOf(call, {0, 0, 0}, {Factor::kNone, 0}, Factor::Over::kSum),
          FactorOf(call, {Factor::kNone, Factor::kNone, 1, 1}, {1}, Factor::Over::kSum)};
}

}  // namespace

OpDef RoiAlignGradDef() {
  AttrMap attrs = RoiAlignAttrDefaults();
  attrs["input_dims"] = std::vector<int64_t>{};
  attrs["rois_gradient"] = 0;
  return {
      .name = "roi_align_grad",
      .doc =
          "The gradient of x in roi_align(x, rois, batch_indices), dx [B,C,H,W] = `input_dims`, "
          "from dy [R,C,OH,OW] and, with mode=\"max\", x; with rois_gradient=1 also drois [R,4], "
          "which needs x. The other attributes are those of roi_align.",
      .input_names = {"rois", "batch_indices", "dy", "x?"},
      .output_names = {"dx", "drois"},
      .attr_defaults = std::move(attrs),
      .required_attrs = {"output", "input_dims"},
      .cost_class = CostClass::kPool,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .gradient = Gradient,
      .no_gradient_inputs = {1},
      .recompute = Recompute::kCheap,
      .shared_axes = FindSharedAxes,
      .dims_attr = "input_dims",
      .reference = Reference,
  };
}

}  // namespace ridge
