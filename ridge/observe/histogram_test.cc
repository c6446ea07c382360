#include "ridge/observe/histogram.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace ridge {
namespace {

double Total(const std::vector<HistogramBucket>& buckets) {
  double total = 0;
  for (const HistogramBucket& bucket : buckets) total += bucket.count;
  return total;
}

TEST(Histogram, CountsEachNumberInTheBucketThatHoldsIt) {
  std::vector<double> numbers;
  for (int i = 0; i <= 300; ++i) numbers.push_back(i);
  const std::vector<HistogramBucket> buckets = HistogramOf(numbers);
  ASSERT_EQ(buckets.size(), 30U);
  EXPECT_EQ(buckets.front().left, 0);
  EXPECT_EQ(buckets.back().right, 300);
  for (size_t i = 0; i < buckets.size(); ++i)
    EXPECT_EQ(buckets[i].count, i + 1 == buckets.size() ? 11 : 10) << i;
}

TEST(Histogram, LeavesOutWhatIsNotFinite) {
  const double infinity = std::numeric_limits<double>::infinity();
  const auto buckets = HistogramOf(std::vector<double>{1, std::nan(""), 2, infinity, -infinity});
  EXPECT_EQ(Total(buckets), 2);
  EXPECT_EQ(buckets.front().left, 1);
  EXPECT_EQ(buckets.back().right, 2);
  EXPECT_TRUE(HistogramOf(std::vector<double>{std::nan("")}).empty());
  EXPECT_TRUE(HistogramOf({}).empty());
}

TEST(Histogram, EqualNumbersHaveOneBucketAroundThem) {
  const auto buckets = HistogramOf(std::vector<double>(7, 3.0));
  ASSERT_EQ(buckets.size(), 1U);
  EXPECT_EQ(buckets[0].left, 2.5);
  EXPECT_EQ(buckets[0].right, 3.5);
  EXPECT_EQ(buckets[0].count, 7);
}

TEST(Histogram, TheGreatestRangeLosesNoNumber) {
  const double most = std::numeric_limits<double>::max();
  const auto buckets = HistogramOf(std::vector<double>{-most, 0, most});
  EXPECT_EQ(Total(buckets), 3);
  EXPECT_EQ(buckets.front().count, 1);
  EXPECT_EQ(buckets.back().count, 1);
}

}  // namespace
}  // namespace ridge
