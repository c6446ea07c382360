#include "ridge/backend/cuda/kernels/roi_text.h"

#include <fmt/format.h>

#include "ridge/backend/cuda/kernel_text.h"

namespace ridge::cuda {
namespace {

constexpr std::string_view kRoiText = R"cuda(
struct RoiAxis {
  double start, bin, points;
  bool follows_end;
  int extent;
  RIDGE_FUNCTION double PointAt(int b, double point) const {
    return start + (b + (point + 0.5) / points) * bin;
  }
  RIDGE_FUNCTION bool LeavesOut() const { return points > (double)extent + 2 && bin > 0; }
  RIDGE_FUNCTION double PointOf(int b, double place) const {
    return (place - (start + b * bin)) / bin * points - 0.5;
  }
  RIDGE_FUNCTION double FirstPoint(int b) const {
    const double first = LeavesOut() ? floor(PointOf(b, -1)) : 0;
    return first > 0 ? first : 0;
  }
  RIDGE_FUNCTION double EndPoint(int b) const {
    const double end = LeavesOut() ? ceil(PointOf(b, extent)) + 1 : points;
    return end < points ? end : points;
  }
};
RIDGE_FUNCTION RoiAxis AxisOf(double from, double to, int bins, int extent) {
  const double start = from * $scale - $offset, end = to * $scale - $offset;
  const double size = $offset > 0 || !(end - start < 1) ? end - start : 1.0;
  const double wanted = ceil(size / bins);
  const double points = $ratio > 0 ? $ratio : wanted > 0 && wanted < 4503599627370496.0 ? wanted : 0.0;
  return {start, size / bins, points, size == end - start, extent};
}
struct RoiNeighbours {
  int place[2];
  double weight[2], slope;
  bool inside;
};
RIDGE_FUNCTION RoiNeighbours NeighboursOf(double at, int extent) {
  if (!(at >= -1 && at <= extent) || extent == 0) return {{0, 0}, {0, 0}, 0, false};
  const double slope = at > 0 && at < extent - 1;  // held at an edge, a point does not move
  at = at < 0 ? 0 : at > extent - 1 ? extent - 1 : at;
  const int first = (int)at, next = first + 1 < extent ? first + 1 : extent - 1;
  const double rest = at - first;
  return {{first, next}, {1 - rest, rest}, slope, true};
}
// A bin of a region in one plane of x; f(across, along, y, x) for the points that may be in x.
struct RoiBin {
  RoiAxis ay, ax;
  int by, bx;
  template <class F> RIDGE_FUNCTION void ForEachPoint(F f) const {
    const double y_end = ay.EndPoint(by), x_begin = ax.FirstPoint(bx), x_end = ax.EndPoint(bx);
    for (double py = ay.FirstPoint(by); py < y_end; ++py) {
      const double y = ay.PointAt(by, py);
      const RoiNeighbours across = NeighboursOf(y, ay.extent);
      for (double px = x_begin; px < x_end; ++px) {
        const double x = ax.PointAt(bx, px);
        f(across, NeighboursOf(x, ax.extent), y, x);
      }
    }
  }
  RIDGE_FUNCTION double Points() const { return ay.points * ax.points; }
  RIDGE_FUNCTION bool LeavesOut() const {
    const double ys = ay.EndPoint(by) - ay.FirstPoint(by), xs = ax.EndPoint(bx) - ax.FirstPoint(bx);
    return (ys > 0 && xs > 0 ? ys * xs : 0) < Points();
  }
};
RIDGE_FUNCTION RoiBin BinOf(const $T* roi, int bin) {
  return {AxisOf((double)Load(roi, 1), (double)Load(roi, 3), $out_height, $height),
          AxisOf((double)Load(roi, 0), (double)Load(roi, 2), $out_width, $width),
          bin / $out_width, bin % $out_width};
}
RIDGE_FUNCTION R MeanOf(const RoiBin& bin, const $T* plane) {
  R sum = 0;
  bin.ForEachPoint([&](const RoiNeighbours& ny, const RoiNeighbours& nx, double, double) {
    if (!ny.inside || !nx.inside) return;
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 2; ++j)
        sum += (R)(ny.weight[i] * nx.weight[j]) * (R)Load(plane, (i64)ny.place[i] * $width + nx.place[j]);
  });
  const double points = bin.Points();
  return sum / (R)(points > 1 ? points : 1);
}
// The neighbour of all points whose weighted value is largest, the first of equals; place -1: none.
struct RoiWinner {
  i64 place;
  double weight, to_y, to_x;  // and its weight's derivatives by the point
  double y, x;                // the point
  R value;
};
RIDGE_FUNCTION RoiWinner LargestOf(const RoiBin& bin, const $T* plane) {
  RoiWinner best = {-1, 0, 0, 0, 0, 0, 0};
  bin.ForEachPoint([&](const RoiNeighbours& ny, const RoiNeighbours& nx, double y, double x) {
    if (!ny.inside || !nx.inside) {
      if (best.place < 0 || R(0) > best.value) best = {0, 0, 0, 0, y, x, 0};
      return;
    }
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 2; ++j) {
        const i64 place = (i64)ny.place[i] * $width + nx.place[j];
        const double weight = ny.weight[i] * nx.weight[j];
        const R value = weight == 0 ? R(0) : (R)weight * (R)Load(plane, place);
        if (best.place >= 0 && !(value > best.value)) continue;
        const double to_y = (i ? ny.slope : -ny.slope) * nx.weight[j];
        const double to_x = (j ? nx.slope : -nx.slope) * ny.weight[i];
        best = {place, weight, to_y, to_x, y, x, value};
      }
  });
  if (bin.LeavesOut() && (best.place < 0 || R(0) > best.value)) best = {0, 0, 0, 0, 0, 0, 0};
  return best;
}
)cuda";

}  // namespace

std::string RoiText(const RoiGeometry& geometry, const char* storage) {
  return FillText(kRoiText, {{"T", storage},
                             {"scale", fmt::format("((double)({}))", geometry.spatial_scale)},
                             {"offset", geometry.offset > 0 ? "0.5" : "0.0"},
                             {"ratio", fmt::format("{}.0", geometry.sampling_ratio)},
                             {"out_height", std::to_string(geometry.out_height)},
                             {"out_width", std::to_string(geometry.out_width)},
                             {"height", std::to_string(geometry.height)},
                             {"width", std::to_string(geometry.width)}});
}

}  // namespace ridge::cuda
