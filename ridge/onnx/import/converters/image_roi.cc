// MaxRoiPool and RoiAlign.
#include <fmt/format.h>

#include "ridge/onnx/import/converters/image.h"

namespace ridge {
namespace {

Status CheckInputs(OnnxNode& n, size_t count) {
  RIDGE_RETURN_IF_ERROR(n.Need(count));
  if (n.type(0).rank() == 4 && n.type(1).rank() == 2) return Status();
  return n.Error(fmt::format("X is {}, rois {}; X must be [N, C, H, W], rois a matrix",
                             TypeToString(n.type(0)), TypeToString(n.type(1))));
}

}  // namespace

Result<Value> ConvertMaxRoiPool(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(CheckInputs(n, 2));
  const Value x = n[0];
  const Value rois = Cast(n[1], x.dtype());
  return OpOutputs(
      "max_roi_pool", {x, rois},
      {{"output", n.integers("pooled_shape")}, {"spatial_scale", n.number("spatial_scale", 1)}})[0];
}

// Before version 16 there were no half pixels.
Result<Value> ConvertRoiAlign(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(CheckInputs(n, 3));
  const std::string coordinates =
      n.text("coordinate_transformation_mode", n.opset() < 16 ? "output_half_pixel" : "half_pixel");
  if (coordinates != "half_pixel" && coordinates != "output_half_pixel") {
    return n.Error(
        fmt::format("coordinate_transformation_mode is \"{}\"; it must be half_pixel or "
                    "output_half_pixel",
                    coordinates));
  }
  const Value x = n[0];
  const Value rois = Cast(n[1], x.dtype());
  return Op("roi_align", {x, rois, n[2]},
            {{"output", {n.integer("output_height", 1), n.integer("output_width", 1)}},
             {"sampling_ratio", n.integer("sampling_ratio", 0)},
             {"spatial_scale", n.number("spatial_scale", 1)},
             {"half_pixel", coordinates == "half_pixel"},
             {"mode", n.text("mode", "avg")}});
}

}  // namespace ridge
