// Histogram: how many of many numbers lie where, in buckets of equal width.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace ridge {

struct HistogramBucket {
  double left = 0, right = 0;  // the right edge belongs to the last bucket only
  double count = 0;
};

inline constexpr int kHistogramBuckets = 30;  // as many as TensorBoard's own writer makes

// From the least to the greatest of the finite numbers; one bucket of width 1 when all are equal;
// none when none is finite.
std::vector<HistogramBucket> HistogramOf(std::span<const double> numbers);

}  // namespace ridge
