// DeformConv: each tap of the window is read at a place of its own, then it is a convolution.
//
// The places are sampled into columns [N, C * taps, outputs], which a convolution of width 1 takes.
#include <fmt/format.h>

#include "ridge/graph/ops/shared/reduce.h"
#include "ridge/graph/ops/shared/window.h"
#include "ridge/onnx/import/converters/conv.h"
#include "ridge/onnx/import/converters/image_sample.h"

namespace ridge {
namespace {

struct Deform {
  OnnxWindow window;
  int64_t batch, channels, offset_groups, taps, pixels, points;
  Dims extents, outputs;

  size_t spatial() const { return extents.size(); }
  // [N, offset groups, taps, outputs..] and more behind.
  Dims PointDims(std::initializer_list<int64_t> more = {}) const {
    Dims dims = {batch, offset_groups, taps};
    dims.insert(dims.end(), outputs.begin(), outputs.end());
    dims.insert(dims.end(), more);
    return dims;
  }
};

Status CheckOffsets(OnnxNode& n, const Deform& c) {
  Dims offset = {c.batch, c.offset_groups * c.taps * static_cast<int64_t>(c.spatial())};
  Dims mask = {c.batch, c.offset_groups * c.taps};
  offset.insert(offset.end(), c.outputs.begin(), c.outputs.end());
  mask.insert(mask.end(), c.outputs.begin(), c.outputs.end());
  if (n.dims(2) != offset) {
    return n.Error(fmt::format("offset has shape {}; it must be {}", DimsToString(n.dims(2)),
                               DimsToString(offset)));
  }
  if (n.has_input(4) && n.dims(4) != mask) {
    return n.Error(fmt::format("mask has shape {}; it must be {}", DimsToString(n.dims(4)),
                               DimsToString(mask)));
  }
  return Status();
}

Result<Deform> ReadDeform(OnnxNode& n) {
  const Dims x = n.dims(0), w = n.dims(1);
  RIDGE_RETURN_IF_ERROR(CheckSpatial(n, x));
  if (w.size() != x.size()) {
    return n.Error(
        fmt::format("W has shape {}, X {}; both need one rank", DimsToString(w), DimsToString(x)));
  }
  Deform c{.window = {},
           .batch = x[0],
           .channels = x[1],
           .offset_groups = 1,
           .taps = 1,
           .pixels = 1,
           .points = 1,
           .extents = {x.begin() + 2, x.end()},
           .outputs = {}};
  RIDGE_ASSIGN_OR_RETURN(c.window, ReadWindow(n, x, {w.begin() + 2, w.end()}));
  c.offset_groups = n.integer("offset_group", 1);
  if (c.offset_groups < 1 || c.channels % c.offset_groups != 0) {
    return n.Error(fmt::format("offset_group is {}; it must divide the {} channels",
                               c.offset_groups, c.channels));
  }
  for (size_t d = 0; d < c.spatial(); ++d) {
    const int64_t padded = c.extents[d] + c.window.pad_begin[d] + c.window.pad_end[d];
    if (c.extents[d] < 1 || padded < c.window.span(d)) {
      return n.Error(
          fmt::format("the window spans {}, X with its pads {}", c.window.span(d), padded));
    }
    c.outputs.push_back((padded - c.window.span(d)) / c.window.stride[d] + 1);
    c.taps = SaturatedProduct({c.taps, c.window.kernel[d]});
  }
  c.pixels = ElementCount(c.extents);
  c.points = ElementCount(c.outputs);
  RIDGE_RETURN_IF_ERROR(CheckOffsets(n, c));
  return c;
}

// Where tap k lies along axis d of the kernel, times the dilation: [1, 1, taps, 1..].
Value TapPlaces(GraphBuilder& b, const Deform& c, size_t d, DType dtype) {
  Dims dims(c.spatial() + 3, 1);
  dims[2] = c.taps;
  Tensor places({dtype, dims});
  const int64_t inner = RowMajorStrides(c.window.kernel)[d];
  for (int64_t k = 0; k < c.taps; ++k) {
    const int64_t at = k / inner % c.window.kernel[d] * c.window.dilation[d];
    StoreFromDouble(dtype, places.mutable_data(), k, static_cast<double>(at));
  }
  return b.Constant(std::move(places), "tap");
}

// Where the windows begin along axis d: [1, .., outputs[d], .., 1].
Value WindowPlaces(GraphBuilder& b, const Deform& c, size_t d, DType dtype) {
  Dims dims(c.spatial() + 3, 1);
  dims[d + 3] = c.outputs[d];
  Tensor places({dtype, dims});
  for (int64_t o = 0; o < c.outputs[d]; ++o) {
    StoreFromDouble(dtype, places.mutable_data(), o,
                    static_cast<double>(o * c.window.stride[d] - c.window.pad_begin[d]));
  }
  return b.Constant(std::move(places), "window");
}

// The coordinate of axis d that each tap reads: offset [N, groups * taps * axes, outputs..] holds
// those of all axes side by side.
Value PointsAlong(OnnxNode& n, const Deform& c, size_t d) {
  GraphBuilder& b = n.b();
  const DType given = n.type(2).dtype;
  const DType dtype = BytesPerElement(given) < 4 ? DType::kF32 : given;
  const auto axes = static_cast<int64_t>(c.spatial()), at = static_cast<int64_t>(d);
  const Value offsets =
      ReshapeExactly(Cast(n[2], dtype), {c.batch * c.offset_groups * c.taps, axes, c.points});
  const Value own = Slice(offsets, 1, at, at + 1);
  const Value windows = WindowPlaces(b, c, d, dtype);
  const Value base = TapPlaces(b, c, d, dtype) + windows;
  return ReshapeExactly(own, c.PointDims()) + base;
}

// X as rows of the channels of one offset group, and the first row of each image and group.
SampledImages ImagesOf(OnnxNode& n, const Deform& c) {
  GraphBuilder& b = n.b();
  const int64_t images = c.batch * c.offset_groups, width = c.channels / c.offset_groups;
  const Value planes = ReshapeExactly(n[0], {images, width, c.pixels});
  std::vector<int64_t> first;
  for (int64_t i = 0; i < images; ++i) first.push_back(i * c.pixels);
  Dims dims(c.spatial() + 3, 1);
  dims[0] = c.batch;
  dims[1] = c.offset_groups;
  return {ReshapeExactly(Transpose(planes, {0, 2, 1}), {images * c.pixels, width}), c.extents,
          b.Constant(Tensor::FromInts(dims, first), "first_row")};
}

// [N, groups, taps, outputs.., width] -> [N, channels * taps, points]
Value Columns(OnnxNode& n, const Deform& c, Value samples) {
  const int64_t width = c.channels / c.offset_groups;
  if (n.has_input(4)) {
    const Value mask = ReshapeExactly(n[4], c.PointDims({1}));
    samples = samples * mask;
  }
  const Value flat = ReshapeExactly(samples, {c.batch * c.offset_groups, c.taps, c.points, width});
  return ReshapeExactly(Transpose(flat, {0, 3, 1, 2}), {c.batch, c.channels * c.taps, c.points});
}

}  // namespace

Result<Value> ConvertDeformConv(OnnxNode& n) {
  RIDGE_ASSIGN_OR_RETURN(const Deform c, ReadDeform(n));
  GraphBuilder& b = n.b();
  std::vector<Value> points;
  for (size_t d = 0; d < c.spatial(); ++d) points.push_back(PointsAlong(n, c, d));
  const Value samples = SampleImages(b, ImagesOf(n, c), points, SampleMode::kLinear,
                                     SamplePadding::kZeros, /*align_corners=*/true);
  const Dims w = n.dims(1);
  const Value weight = ReshapeExactly(n[1], {w[0], SaturatedProduct({w[1], c.taps}), 1});
  const Value y =
      Op("conv", {Columns(n, c, samples), weight, n[3]}, {{"groups", n.integer("group", 1)}});
  Dims dims = {c.batch, w[0]};
  dims.insert(dims.end(), c.outputs.begin(), c.outputs.end());
  return ReshapeExactly(y, dims);
}

}  // namespace ridge
