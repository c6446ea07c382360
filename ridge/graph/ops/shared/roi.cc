#include "ridge/graph/ops/shared/roi.h"

#include <fmt/format.h>

#include "ridge/graph/ops/shared/checks.h"

namespace ridge {
namespace {

constexpr int64_t kMostBins = int64_t{1} << 20;
constexpr double kMostPoints = 0x1p52;  // of a bin along an axis; a bin with more has none

}  // namespace

Status CheckRois(const OpCall& call, DType dtype, const Dims& x, size_t rois, size_t indices) {
  if (x.size() != 4) {
    return CallError(call, fmt::format("x has shape {}; it must have 4 dimensions, [batch, "
                                       "channels, height, width]",
                                       DimsToString(x)));
  }
  const Dims& r = call.inputs[rois].dims;
  const int64_t count = r.empty() ? 0 : r[0];
  RIDGE_RETURN_IF_ERROR(CheckType(call, rois, "rois", {dtype, {count, 4}}, "x1, y1, x2, y2 each"));
  RIDGE_RETURN_IF_ERROR(CheckIndex(call, indices, "batch_indices"));
  RIDGE_RETURN_IF_ERROR(CheckType(call, indices, "batch_indices",
                                  {call.inputs[indices].dtype, {count}}, "one for each roi"));
  RIDGE_RETURN_IF_ERROR(CheckIntegers(call, "output", 2, 1, kMostBins));
  RIDGE_RETURN_IF_ERROR(CheckFlag(call, "half_pixel"));
  const int64_t ratio = call.integer("sampling_ratio");
  if (ratio < 0 || ratio > 1024)
    return CallError(call, fmt::format("sampling_ratio is {}; it must be from 0 to 1024", ratio));
  if (!std::isfinite(call.number("spatial_scale")))
    return CallError(call, fmt::format("spatial_scale is {}", call.number("spatial_scale")));
  const std::string& mode = call.text("mode");
  if (mode == "avg" || mode == "max") return Status();
  return CallError(call, fmt::format("mode is \"{}\"; it must be avg or max", mode));
}

AttrMap RoiAlignAttrDefaults() {
  return {{"output", {1, 1}},
          {"sampling_ratio", 0},
          {"spatial_scale", 1.0},
          {"half_pixel", 1},
          {"mode", "avg"}};
}

RoiGeometry RoiGeometryOf(const OpCall& call, const Dims& x, int64_t rois) {
  return {.batch = x[0],
          .channels = x[1],
          .height = x[2],
          .width = x[3],
          .rois = rois,
          .out_height = call.integers("output")[0],
          .out_width = call.integers("output")[1],
          .sampling_ratio = call.integer("sampling_ratio"),
          .spatial_scale = call.number("spatial_scale"),
          .offset = call.integer("half_pixel") != 0 ? 0.5 : 0.0,
          .max = call.text("mode") == "max"};
}

RoiAxis RoiAxisOf(const RoiGeometry& g, double from, double to, int64_t bins, int64_t extent) {
  const double start = from * g.spatial_scale - g.offset, end = to * g.spatial_scale - g.offset;
  const double size = g.offset > 0 ? end - start : std::max(end - start, 1.0);
  const double wanted = std::ceil(size / static_cast<double>(bins));
  const bool has_points = wanted > 0 && wanted < kMostPoints;  // NaN has none
  const double points =
      g.sampling_ratio > 0 ? static_cast<double>(g.sampling_ratio) : (has_points ? wanted : 0.0);
  return {start, size / static_cast<double>(bins), points, size == end - start, extent};
}

// Points of an adaptive number are at least half a place apart, and a given number has a bound: few
// are in x, however many a bin has.
RoiAxis::Points RoiAxis::PointsOf(int64_t bin_index) const {
  const auto places = static_cast<double>(extent);
  if (!(points > places + 2 && bin > 0)) return {0, points};
  const double from = start + static_cast<double>(bin_index) * bin;
  const auto point_at = [&](double place) { return (place - from) / bin * points - 0.5; };
  return {std::max(0.0, std::floor(point_at(-1))),
          std::min(points, std::ceil(point_at(places)) + 1)};
}

void SampleBin(const RoiGeometry& g, const RoiAxis& ay, const RoiAxis& ax, int64_t bin,
               std::vector<RoiSample>& samples) {
  samples.clear();
  const RoiAxis::Points ys = ay.PointsOf(bin / g.out_width), xs = ax.PointsOf(bin % g.out_width);
  for (double py = ys.first; py < ys.last; ++py) {
    for (double px = xs.first; px < xs.last; ++px) {
      const double y = ay.PointAt(bin / g.out_width, py), x = ax.PointAt(bin % g.out_width, px);
      samples.push_back(SampleRoi(g, y, x));
      samples.back().at_y = (y - ay.start) / ay.bin / static_cast<double>(g.out_height);
      samples.back().at_x = (x - ax.start) / ax.bin / static_cast<double>(g.out_width);
    }
  }
  if (static_cast<double>(samples.size()) < ay.points * ax.points) samples.push_back({});
}

RoiSample SampleRoi(const RoiGeometry& g, double y, double x) {
  const auto height = static_cast<double>(g.height), width = static_cast<double>(g.width);
  if (!(y >= -1 && y <= height && x >= -1 && x <= width) || g.height == 0 || g.width == 0)
    return {};
  // Where a point is held at the edge it does not move.
  const double moves_y = y > 0 && y<height - 1, moves_x = x> 0 && x < width - 1;
  y = std::clamp(y, 0.0, height - 1);
  x = std::clamp(x, 0.0, width - 1);
  const auto y0 = static_cast<int64_t>(y), x0 = static_cast<int64_t>(x);
  const int64_t y1 = std::min(y0 + 1, g.height - 1), x1 = std::min(x0 + 1, g.width - 1);
  const double ly = y - static_cast<double>(y0), lx = x - static_cast<double>(x0);
  return {{y0 * g.width + x0, y0 * g.width + x1, y1 * g.width + x0, y1 * g.width + x1},
          {(1 - ly) * (1 - lx), (1 - ly) * lx, ly * (1 - lx), ly * lx},
          {-moves_y * (1 - lx), -moves_y * lx, moves_y * (1 - lx), moves_y * lx},
          {-moves_x * (1 - ly), moves_x * (1 - ly), -moves_x * ly, moves_x * ly},
          0,
          0};
}

RoiWinner LargestOf(const std::vector<RoiSample>& samples, const double* plane) {
  RoiWinner best;
  for (const RoiSample& sample : samples) {
    for (int i = 0; i < 4; ++i) {
      const double value = sample.weight[i] == 0 ? 0 : sample.weight[i] * plane[sample.place[i]];
      if (best.place >= 0 && !(value > best.value)) continue;
      best = {sample.place[i], sample.weight[i], value, &sample, i};
    }
  }
  return best;
}

}  // namespace ridge
