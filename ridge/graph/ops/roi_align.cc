// roi_align: y = the mean (or largest part) of bilinear samples of x in the bins of each region.
//
// The number of samples that a region's size gives is taken as given; the regions have a gradient
// through the places of the samples.
#include "ridge/graph/axes.h"
#include "ridge/graph/grad_builder.h"
#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/roi.h"

namespace ridge {
namespace {

// x: float [B,C,H,W].  rois: [R,4].  batch_indices: i64 or i32 [R].  y: [R,C,OH,OW].
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  const TensorType& x = call.inputs[0];
  RIDGE_RETURN_IF_ERROR(CheckFloat(call, 0, "x"));
  RIDGE_RETURN_IF_ERROR(CheckRois(call, x.dtype, x.dims, 1, 2));
  const std::vector<int64_t>& output = call.integers("output");
  return std::vector<TensorType>{
      {x.dtype, {call.inputs[1].dims[0], x.dims[1], output[0], output[1]}}};
}

// Four multiply-adds a sample; where their number depends on the regions, four samples a bin.
Cost EstimateCost(const OpCall& call) {
  const int64_t ratio = call.integer("sampling_ratio");
  const int64_t samples = ratio > 0 ? ratio * ratio : 4;
  return {.flops = 8 * samples * call.outputs[0].elements(),
          .bytes_read = call.inputs[0].bytes() + call.inputs[1].bytes(),
          .bytes_written = call.outputs[0].bytes()};
}

void Gradient(GradBuilder& g) {
  AttrMap attrs = g.attrs();
  attrs["input_dims"] = g.x().dims();
  attrs["rois_gradient"] = g.needs_dx(1);
  std::vector<Value> inputs = {g.x(1), g.x(2), g.dy()};
  // The largest part is looked up again.
  if (attrs.text("mode") == "max" || g.needs_dx(1)) inputs.push_back(g.x());
  const std::vector<Value> grads = OpOutputs("roi_align_grad", inputs, attrs);
  g.dx() = grads[0];
  if (g.needs_dx(1)) g.dx(1) = grads[1];
}

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const RoiGeometry g = RoiGeometryOf(call, call.inputs[0].dims, call.inputs[1].dims[0]);
  std::fill_n(out[0], call.outputs[0].elements(), 0.0);
  ForEachRoiBin(g, in[1], in[2], [&](int64_t y, int64_t plane, const auto& samples, double count) {
    if (g.max) {
      out[0][y] = LargestOf(samples, in[0] + plane).value;
      return;
    }
    double sum = 0;
    for (const RoiSample& sample : samples) {
      for (int i = 0; i < 4; ++i) sum += sample.weight[i] * in[0][plane + sample.place[i]];
    }
    out[0][y] = sum / std::max(1.0, count);
  });
}

// Regions and channels.
Axes FindSharedAxes(const OpCall& call) {
  return {Mapped(call, {Factor::kNone, 0, 0}, 0), Mapped(call, {1}, 1)};
}

}  // namespace

OpDef RoiAlignDef() {
  return {
      .name = "roi_align",
      .doc =
          "For each of rois [R,4] (x1, y1, x2, y2 of image batch_indices[r], times "
          "spatial_scale, less 0.5 with half_pixel=1) a grid of `output` bins of x [B,C,H,W], y "
          "[R,C,OH,OW]: the mean of sampling_ratio x sampling_ratio bilinear samples a bin (0: as "
          "many as the bin is large), or with mode=\"max\" the largest weighted neighbour of "
          "them. A batch index out of range gives 0.",
      .input_names = {"x", "rois", "batch_indices"},
      .output_names = {"y"},
      .attr_defaults = RoiAlignAttrDefaults(),
      .required_attrs = {"output"},
      .cost_class = CostClass::kPool,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .gradient = Gradient,
      .no_gradient_inputs = {2},
      .recompute = Recompute::kCheap,
      .onnx = {"RoiAlign", 10, 22},
      .shared_axes = FindSharedAxes,
      .reference = Reference,
  };
}

}  // namespace ridge
