// ONNX exporters: resizing, regions of images, determinants.
#include "ridge/onnx/export/exporter.h"

namespace ridge {
namespace {

constexpr int64_t kMostWeights = int64_t{1} << 24;

// The table of weights as a matrix [out, in] of the type of x.
Tensor WeightMatrix(const OnnxNodeWriter& n, int64_t out, int64_t in) {
  const std::vector<int64_t>&starts = n.integers("starts"), &places = n.integers("places");
  const auto& weights = std::get<std::vector<double>>(n.attrs().at("weights"));
  std::vector<double> dense(static_cast<size_t>(out * in), 0);
  for (size_t row = 0; row + 1 < starts.size(); ++row) {
    for (auto k = static_cast<size_t>(starts[row]); k < static_cast<size_t>(starts[row + 1]); ++k)
      dense[row * static_cast<size_t>(in) + static_cast<size_t>(places[k])] += weights[k];
  }
  Tensor matrix({n.type(0).dtype, {out, in}});
  for (size_t i = 0; i < dense.size(); ++i) {
    StoreFromDouble(matrix.type().dtype, matrix.mutable_data(), static_cast<int64_t>(i), dense[i]);
  }
  return matrix;
}

// A product with the matrix of the weights, along the axis.  Resize would be smaller, but has not
// every table that interpolate can hold.
Status WriteInterpolate(OnnxNodeWriter& n) {
  const int rank = n.type(0).rank();
  const int64_t axis = n.axis("axis", rank), last = rank - 1;
  const auto at = static_cast<size_t>(axis);
  const int64_t in = n.type(0).dims[at], out = n.out_type().dims[at];
  if (in > 0 && out > kMostWeights / in)
    return n.Unsupported("its table has too many entries for a matrix");
  const std::string matrix = n.Constant(WeightMatrix(n, out, in), "weights");
  if (axis == last - 1) {
    n.Emit("MatMul", {matrix, n.in(0)});
    return Status();
  }
  const std::string transposed = n.Temp("Transpose", {matrix}, {{"perm", {1, 0}}});
  if (axis == last) {
    n.Emit("MatMul", {n.in(0), transposed});
    return Status();
  }
  std::vector<int64_t> swap;
  for (int64_t a = 0; a < rank; ++a) swap.push_back(a == axis ? last : a == last ? axis : a);
  const std::string x = n.Temp("Transpose", {n.in(0)}, {{"perm", swap}});
  n.Emit("Transpose", {n.Temp("MatMul", {x, transposed})}, {{"perm", swap}});
  return Status();
}

// Before opset 16 no half pixel is taken off.
Status WriteRoiAlign(OnnxNodeWriter& n) {
  const bool half = n.integer("half_pixel") != 0;
  AttrMap attrs = {{"mode", n.text("mode")},
                   {"output_height", n.integers("output")[0]},
                   {"output_width", n.integers("output")[1]},
                   {"sampling_ratio", n.integer("sampling_ratio")},
                   {"spatial_scale", n.number("spatial_scale")}};
  if (half && !n.HasOpset(16, "half_pixel")) return Status();
  if (n.opset() >= 16)
    attrs["coordinate_transformation_mode"] =
        std::string(half ? "half_pixel" : "output_half_pixel");
  const std::string images = n.Cast(n.in(2), n.type(2).dtype, DType::kI64);
  n.Emit("RoiAlign", {n.in(0), n.in(1), images}, attrs);
  return Status();
}

Status WriteMaxRoiPool(OnnxNodeWriter& n) {
  if (n.used(1)) return n.Unsupported("its places are read; ONNX's MaxRoiPool has none");
  n.Emit("MaxRoiPool", n.ins(),
         {{"pooled_shape", n.integers("output")}, {"spatial_scale", n.number("spatial_scale")}});
  return Status();
}

Status WriteDet(OnnxNodeWriter& n) {
  n.Emit("Det", {n.in(0)});
  return Status();
}

constexpr OnnxExporter kTable[] = {
    {"det", WriteDet},
    {"interpolate", WriteInterpolate},
    {"max_roi_pool", WriteMaxRoiPool},
    {"roi_align", WriteRoiAlign},
};

}  // namespace

std::span<const OnnxExporter> OnnxImageExporters() { return kTable; }

}  // namespace ridge
