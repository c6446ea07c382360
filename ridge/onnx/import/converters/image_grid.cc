// AffineGrid and GridSample, over two and three spatial dimensions.
#include <fmt/format.h>

#include "ridge/graph/ops/shared/reduce.h"
#include "ridge/onnx/import/converters/image.h"
#include "ridge/onnx/import/converters/image_sample.h"

namespace ridge {
namespace {

constexpr int64_t kMostGridPoints = int64_t{1} << 22;

// The normalized coordinate of place i of `extent`: -1 and 1 are the centers of the first and last
// (align_corners) or the ends of the image.
double Normalized(int64_t i, int64_t extent, bool align_corners) {
  const auto n = static_cast<double>(extent);
  if (align_corners) return extent == 1 ? 0 : 2 * static_cast<double>(i) / (n - 1) - 1;
  return (2 * static_cast<double>(i) + 1) / n - 1;
}

// [points, spatial + 1]: for each place in row-major order its coordinates, the last axis first,
// and 1.
Tensor BaseGrid(DType dtype, const Dims& extents, bool align_corners) {
  const size_t spatial = extents.size();
  const Dims strides = RowMajorStrides(extents);
  const int64_t points = ElementCount(extents);
  Tensor grid({dtype, {points, static_cast<int64_t>(spatial) + 1}});
  int64_t at = 0;
  for (int64_t p = 0; p < points; ++p) {
    for (size_t d = spatial; d-- > 0;) {
      const int64_t i = p / strides[d] % extents[d];
      StoreFromDouble(dtype, grid.mutable_data(), at++, Normalized(i, extents[d], align_corners));
    }
    StoreFromDouble(dtype, grid.mutable_data(), at++, 1);
  }
  return grid;
}

Result<SampleMode> ReadSampleMode(OnnxNode& n) {
  const std::string mode = n.text("mode", "linear");
  if (mode == "bilinear" || mode == "linear") return SampleMode::kLinear;
  if (mode == "nearest") return SampleMode::kNearest;
  if (mode == "bicubic" || mode == "cubic") return SampleMode::kCubic;
  return n.Error(fmt::format("mode is \"{}\"; it must be linear, nearest or cubic", mode));
}

Result<SamplePadding> ReadPaddingMode(OnnxNode& n) {
  const std::string mode = n.text("padding_mode", "zeros");
  if (mode == "zeros") return SamplePadding::kZeros;
  if (mode == "border") return SamplePadding::kBorder;
  if (mode == "reflection") return SamplePadding::kReflection;
  return n.Error(
      fmt::format("padding_mode is \"{}\"; it must be zeros, border or reflection", mode));
}

Status CheckGrid(OnnxNode& n, const TensorType& x, const TensorType& grid) {
  const size_t rank = x.dims.size();
  bool good = rank >= 3 && rank <= 5 && grid.dims.size() == rank && grid.dims[0] == x.dims[0] &&
              grid.dims[rank - 1] == static_cast<int64_t>(rank) - 2;
  for (size_t d = 2; good && d < rank; ++d) good = x.dims[d] > 0;
  if (good && IsFloat(x.dtype) && IsFloat(grid.dtype)) return Status();
  return n.Error(
      fmt::format("X is {}, grid {}; X must be a float [N, C, 1 to 3 extents], grid [N, "
                  "as many extents, their number]",
                  TypeToString(x), TypeToString(grid)));
}

// [N, C, ..] -> [N * pixels, C]
Value PixelRows(Value x, const Dims& dims, int64_t pixels) {
  const Value planes = ReshapeExactly(x, {dims[0], dims[1], pixels});
  return ReshapeExactly(Transpose(planes, {0, 2, 1}), {dims[0] * pixels, dims[1]});
}

// i64 [N, 1, ..]: the first row of each image.
Value FirstRows(GraphBuilder& b, int64_t images, int64_t pixels, size_t rank) {
  std::vector<int64_t> first;
  for (int64_t i = 0; i < images; ++i) first.push_back(i * pixels);
  Dims dims(rank, 1);
  dims[0] = images;
  return b.Constant(Tensor::FromInts(dims, first), "first_row");
}

// The coordinate of axis `d` of `spatial` from grid [N, .., spatial], in pixels: [N, ..].
Value PointsAlong(GraphBuilder& b, Value grid, size_t d, size_t spatial, int64_t extent,
                  bool align_corners) {
  if (!b.ok()) return {};
  Dims dims = grid.dims();
  const auto axis = static_cast<int64_t>(dims.size()) - 1;
  const auto at = static_cast<int64_t>(spatial - 1 - d);  // the last axis comes first
  dims.pop_back();
  const Value part = Slice(grid, axis, at, at + 1);
  const auto n = static_cast<double>(extent);
  const double half = (align_corners ? n - 1 : n) / 2;
  return ReshapeExactly(part, dims) * half + (align_corners ? half : half - 0.5);
}

}  // namespace

Result<Value> ConvertAffineGrid(OnnxNode& n) {
  const TensorType theta = n.type(0);
  RIDGE_ASSIGN_OR_RETURN(const std::vector<int64_t> size, n.ConstantInts(1, "size"));
  const bool good = (size.size() == 4 || size.size() == 5) && IsFloat(theta.dtype) &&
                    CheckDims(size).ok() &&
                    theta.dims == Dims{size[0], static_cast<int64_t>(size.size()) - 2,
                                       static_cast<int64_t>(size.size()) - 1};
  if (!good) {
    return n.Error(
        fmt::format("theta is {}, size {}; size must be [N, C, H, W] or [N, C, D, H, W] "
                    "and theta [N, 2, 3] or [N, 3, 4]",
                    TypeToString(theta), DimsToString(size)));
  }
  const Dims extents(size.begin() + 2, size.end());
  const int64_t points = ElementCount(extents);
  if (points > kMostGridPoints)
    return n.Unsupported(fmt::format("a grid of {} points; up to {}", points, kMostGridPoints));
  GraphBuilder& b = n.b();
  const auto spatial = static_cast<int64_t>(extents.size());
  Tensor base = BaseGrid(theta.dtype, extents, n.integer("align_corners", 0) != 0);
  const Value wide =
      Expand(ReshapeExactly(b.Constant(std::move(base), "base_grid"), {1, points, spatial + 1}),
             {size[0], points, spatial + 1});
  const Value grid = MatMul(wide, n[0], /*transpose_a=*/false, /*transpose_b=*/true);
  Dims dims = {size[0]};
  dims.insert(dims.end(), extents.begin(), extents.end());
  dims.push_back(spatial);
  return ReshapeExactly(grid, dims);
}

Result<Value> ConvertGridSample(OnnxNode& n) {
  const TensorType x = n.type(0), grid = n.type(1);
  RIDGE_RETURN_IF_ERROR(CheckGrid(n, x, grid));
  RIDGE_ASSIGN_OR_RETURN(const SampleMode mode, ReadSampleMode(n));
  RIDGE_ASSIGN_OR_RETURN(const SamplePadding padding, ReadPaddingMode(n));
  const bool align_corners = n.integer("align_corners", 0) != 0;
  GraphBuilder& b = n.b();
  const size_t spatial = x.dims.size() - 2;
  const Dims extents(x.dims.begin() + 2, x.dims.end());
  const int64_t pixels = ElementCount(extents);
  // Half a pixel is lost in 16 bits from an extent of 1024 on.
  const Value normalized = Cast(n[1], BytesPerElement(grid.dtype) < 4 ? DType::kF32 : grid.dtype);
  std::vector<Value> points;
  for (size_t d = 0; d < spatial; ++d)
    points.push_back(PointsAlong(b, normalized, d, spatial, extents[d], align_corners));
  const SampledImages images{PixelRows(n[0], x.dims, pixels), extents,
                             FirstRows(b, x.dims[0], pixels, spatial + 1)};
  const Value y = SampleImages(b, images, points, mode, padding, align_corners);
  std::vector<int64_t> order = {0, static_cast<int64_t>(spatial) + 1};
  for (size_t d = 1; d <= spatial; ++d) order.push_back(static_cast<int64_t>(d));
  return Transpose(y, order);
}

}  // namespace ridge
