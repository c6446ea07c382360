// The scratch: the cloud, 24 bytes a point; what reading takes and, once that is done, choosing;
// the numbers of the chosen points.
#include "ridge/data/points/cloud_reader.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "ridge/core/rounding.h"
#include "ridge/data/image/transforms/transform.h"

namespace ridge {
namespace {

double SquaredDistance3(const double* a, const double* b) {
  double sum = 0;
  for (int d = 0; d < 3; ++d) sum += (a[d] - b[d]) * (a[d] - b[d]);
  return sum;
}

// The first of equals is the farthest.
void ChooseFarthest(std::span<const double> cloud, int64_t first, std::span<double> nearest,
                    std::span<int64_t> chosen) {
  std::fill(nearest.begin(), nearest.end(), std::numeric_limits<double>::infinity());
  auto next = static_cast<size_t>(first);
  for (int64_t& place : chosen) {
    place = static_cast<int64_t>(next);
    const double* last = cloud.data() + 3 * next;
    size_t farthest = 0;
    for (size_t i = 0; i < nearest.size(); ++i) {
      nearest[i] = std::min(nearest[i], SquaredDistance3(cloud.data() + 3 * i, last));
      if (nearest[i] > nearest[farthest]) farthest = i;
    }
    next = farthest;
  }
}

// The first places of a random order.
void ChooseAtRandom(TransformDraws& draws, std::span<int64_t> order, std::span<int64_t> chosen) {
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = 0; i < chosen.size(); ++i) {
    const auto left = static_cast<int64_t>(order.size() - i);
    std::swap(order[i], order[i + static_cast<size_t>(draws.Below(left))]);
    chosen[i] = order[i];
  }
}

struct Sphere {
  double center[3] = {};
  double scale = 1;
};

// The mean of the points, and 1 / the largest distance from it.
Sphere SphereOf(std::span<const int64_t> chosen, const double* cloud) {
  Sphere sphere;
  for (const int64_t i : chosen) {
    for (int d = 0; d < 3; ++d)
      sphere.center[d] += cloud[3 * i + d] / static_cast<double>(chosen.size());
  }
  double squared = 0;
  for (const int64_t i : chosen)
    squared = std::max(squared, SquaredDistance3(cloud + 3 * i, sphere.center));
  if (squared >= std::numeric_limits<double>::min()) sphere.scale = 1 / std::sqrt(squared);
  return sphere;
}

}  // namespace

void CloudReader::Admit(const CloudHeader& header) {
  scratch_bytes_ = std::max(scratch_bytes_, ScratchBytes(header));
}

int64_t CloudReader::ScratchBytes(const CloudHeader& header) const {
  const int64_t points = header.points_made();
  return points * 24 + std::max(RoundUp(CloudScratchBytes(header), 8), points * 8) +
         target_.count * 8;
}

Status CloudReader::Read(std::string_view file, std::span<char> scratch, float* out,
                         const CropDraw* draw) const {
  const auto file_bytes = static_cast<int64_t>(file.size());
  RIDGE_ASSIGN_OR_RETURN(const CloudHeader header,
                         ReadCloudHeader(file.substr(0, kCloudStartBytes), file_bytes));
  if (ScratchBytes(header) > static_cast<int64_t>(scratch.size()))
    return Status(ErrorCode::kInvalidData, kCloudChanged);
  const auto points = static_cast<size_t>(header.points_made());
  const auto count = static_cast<size_t>(target_.count);
  auto* cloud = reinterpret_cast<double*>(scratch.data());
  const std::span<char> rest = scratch.subspan(points * 24);
  RIDGE_RETURN_IF_ERROR(ReadCloud(file, header, rest, cloud));
  const std::span chosen(reinterpret_cast<int64_t*>(scratch.data() + ScratchBytes(header)) - count,
                         count);
  Choose({cloud, 3 * points}, rest, chosen, draw);
  const Sphere sphere = target_.scale == PointScale::kSphere ? SphereOf(chosen, cloud) : Sphere();
  for (size_t i = 0; i < count; ++i) {
    for (int d = 0; d < 3; ++d) {
      const double place = cloud[3 * chosen[i] + d];
      *out++ = static_cast<float>((place - sphere.center[d]) * sphere.scale);
    }
  }
  return Status();
}

void CloudReader::Choose(std::span<const double> cloud, std::span<char> scratch,
                         std::span<int64_t> chosen, const CropDraw* draw) const {
  const size_t points = cloud.size() / 3, different = std::min(points, chosen.size());
  std::optional<TransformDraws> draws;
  if (draw != nullptr) draws.emplace(draw->key, draw->sample);
  if (target_.pick == PointPick::kFarthest) {
    const int64_t first = draws ? draws->Below(static_cast<int64_t>(points)) : 0;
    ChooseFarthest(cloud, first, {reinterpret_cast<double*>(scratch.data()), points},
                   chosen.first(different));
  } else if (draws) {
    ChooseAtRandom(*draws, {reinterpret_cast<int64_t*>(scratch.data()), points},
                   chosen.first(different));
  } else {
    const size_t step = target_.pick == PointPick::kEven ? points : different;
    for (size_t i = 0; i < different; ++i) chosen[i] = static_cast<int64_t>(i * step / different);
  }
  for (size_t i = different; i < chosen.size(); ++i) chosen[i] = chosen[i - different];
}

}  // namespace ridge
