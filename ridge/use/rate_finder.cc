#include "ridge/use/rate_finder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ridge {
namespace {

constexpr double kMemory = 0.9;  // of the moving average, an update
constexpr double kDiverged = 4;  // times the lowest average
constexpr size_t kFewest = 10;
constexpr double kLeastFall = 0.02;  // of the first average, for a rate to be suggested
constexpr double kBelowLowest = 10;

// Weighted by the past updates; divided by the sum of the weights, so that the first is no less
// true.
std::vector<RatePoint> Smoothed(const std::vector<RatePoint>& points) {
  std::vector<RatePoint> smoothed;
  double sum = 0, weight = 0, lowest = 0;
  for (const RatePoint& point : points) {
    if (!std::isfinite(point.loss)) break;
    sum = kMemory * sum + (1 - kMemory) * point.loss;
    weight = kMemory * weight + (1 - kMemory);
    const double average = sum / weight;
    if (smoothed.size() >= kFewest && average > kDiverged * std::abs(lowest)) break;
    lowest = smoothed.empty() ? average : std::min(lowest, average);
    smoothed.push_back({point.lr, average});
  }
  return smoothed;
}

// Of those up to `last`, the one after which the average falls fastest; over a few points, since
// single losses are noisy.
size_t Steepest(const std::vector<RatePoint>& points, size_t last) {
  constexpr size_t kSpan = 5;
  size_t steepest = 0;
  double most = 0;
  for (size_t i = 0; i + kSpan <= last; ++i) {
    const double fall =
        (points[i].loss - points[i + kSpan].loss) / std::log(points[i + kSpan].lr / points[i].lr);
    if (fall <= most) continue;
    most = fall;
    steepest = i + kSpan / 2;
  }
  return steepest;
}

}  // namespace

Result<RateFinding> FindRate(const std::vector<RatePoint>& points) {
  RateFinding finding;
  finding.smoothed = Smoothed(points);
  if (finding.smoothed.size() < kFewest) {
    return Status(ErrorCode::kInvalidData,
                  fmt::format("only {} of {} losses are finite, at least {} are needed. hint: look "
                              "for NaN in the data",
                              finding.smoothed.size(), points.size(), kFewest));
  }
  finding.diverged = finding.smoothed.size() < points.size();
  const auto lowest =
      std::min_element(finding.smoothed.begin(), finding.smoothed.end(),
                       [](const RatePoint& a, const RatePoint& b) { return a.loss < b.loss; });
  const double first = finding.smoothed.front().loss;
  if (first - lowest->loss < kLeastFall * std::abs(first)) {
    return Status(
        ErrorCode::kInvalidData,
        fmt::format("the loss never falls by {:g} %, from {:.4g}. hint: more --steps, or a "
                    "larger --batch",
                    100 * kLeastFall, first));
  }
  finding.lowest_lr = lowest->lr;
  const auto last = static_cast<size_t>(lowest - finding.smoothed.begin());
  finding.steepest_lr = finding.smoothed[Steepest(finding.smoothed, last)].lr;
  finding.suggested_lr = std::min(finding.steepest_lr, finding.lowest_lr / kBelowLowest);
  return finding;
}

}  // namespace ridge
