#include "ridge/observe/histogram.h"

#include <algorithm>
#include <cmath>

namespace ridge {
namespace {

struct Range {
  double least = 0, greatest = 0;
  int64_t count = 0;
};

Range FiniteRange(std::span<const double> numbers) {
  Range range;
  for (const double number : numbers) {
    if (!std::isfinite(number)) continue;
    range.least = range.count == 0 ? number : std::min(range.least, number);
    range.greatest = range.count == 0 ? number : std::max(range.greatest, number);
    ++range.count;
  }
  return range;
}

}  // namespace

std::vector<HistogramBucket> HistogramOf(std::span<const double> numbers) {
  const Range range = FiniteRange(numbers);
  if (range.count == 0) return {};
  const double width = range.greatest / kHistogramBuckets - range.least / kHistogramBuckets;
  if (!(width > 0))
    return {{range.least - 0.5, range.least + 0.5, static_cast<double>(range.count)}};
  std::vector<HistogramBucket> buckets(kHistogramBuckets);
  for (int i = 0; i < kHistogramBuckets; ++i)
    buckets[static_cast<size_t>(i)] = {range.least + i * width, range.least + (i + 1) * width, 0};
  buckets.back().right = range.greatest;
  for (const double number : numbers) {
    if (!std::isfinite(number)) continue;
    const double place = number / width - range.least / width;
    ++buckets[static_cast<size_t>(std::clamp(place, 0.0, kHistogramBuckets - 1.0))].count;
  }
  return buckets;
}

}  // namespace ridge
