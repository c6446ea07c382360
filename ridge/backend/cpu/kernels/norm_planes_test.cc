// Bits do not depend on the position of an element, nor on how it is stored.
#include "ridge/backend/cpu/kernels/norm_planes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "hwy/aligned_allocator.h"

namespace ridge::cpu {
namespace {

using Numbers = hwy::AlignedFreeUniquePtr<float[]>;

constexpr int64_t kCount = 16 * 37;

Numbers Random(uint32_t seed, int64_t count) {
  Numbers numbers = hwy::AllocateAligned<float>(static_cast<size_t>(count));
  std::mt19937 random(seed);
  for (int64_t i = 0; i < count; ++i)
    numbers[static_cast<size_t>(i)] = static_cast<float>(random() % 2000) / 1000 - 1;
  return numbers;
}

LaneNorm SomeNorm() {
  LaneNorm norm;
  for (int64_t lane = 0; lane < kNormLanes; ++lane) {
    norm.mean[lane] = 0.01F * static_cast<float>(lane);
    norm.slope[lane] = 1 + 0.1F * static_cast<float>(lane);
    norm.shift[lane] = 0.3F - 0.05F * static_cast<float>(lane);
  }
  return norm;
}

TEST(NormPlanes, StreamedResultsAreTheSame) {
  const Numbers x = Random(1, kCount), extra = Random(2, kCount);
  const Numbers plain = Random(3, kCount), streamed = Random(4, kCount);
  LaneGrad grad;
  for (int64_t lane = 0; lane < kNormLanes; ++lane) grad.mean_g[lane] = grad.mean_gx[lane] = 0.01F;
  for (const bool relu : {false, true}) {
    NormalizePlane(x.get(), extra.get(), kCount, SomeNorm(), relu, false, plain.get());
    NormalizePlane(x.get(), extra.get(), kCount, SomeNorm(), relu, true, streamed.get());
    for (size_t i = 0; i < kCount; ++i) ASSERT_EQ(plain[i], streamed[i]) << i;
    NormGradPlane(x.get(), extra.get(), kCount, SomeNorm(), grad, relu, false, plain.get());
    NormGradPlane(x.get(), extra.get(), kCount, SomeNorm(), grad, relu, true, streamed.get());
    for (size_t i = 0; i < kCount; ++i) ASSERT_EQ(plain[i], streamed[i]) << i;
  }
}

TEST(NormPlanes, TailsAreTheSame) {
  const Numbers x = Random(1, kCount), whole = Random(2, kCount), part = Random(3, kCount);
  NormalizePlane(x.get(), nullptr, kCount, SomeNorm(), true, false, whole.get());
  for (const int64_t count : {1, 7, 15, 17, 31, 100}) {
    NormalizePlane(x.get(), nullptr, count, SomeNorm(), true, false, part.get());
    for (int64_t i = 0; i < count; ++i)
      ASSERT_EQ(whole[static_cast<size_t>(i)], part[static_cast<size_t>(i)]) << count << " " << i;
  }
}

// A mean of 1000 and a variance of 1/3 in f32.
TEST(NormPlanes, MomentsKeepTheirDigitsFarFromZero) {
  constexpr int64_t kMany = 16 * 5000;
  const Numbers x = Random(5, kMany);
  double mean[16] = {}, m2[16] = {};
  for (int64_t i = 0; i < kMany; ++i) x[static_cast<size_t>(i)] += 1000;
  for (int64_t i = 0; i < kMany; ++i) mean[i % 16] += double{x[static_cast<size_t>(i)]} / 5000;
  for (int64_t i = 0; i < kMany; ++i)
    m2[i % 16] += std::pow(double{x[static_cast<size_t>(i)]} - mean[i % 16], 2);
  LaneMoments moments;
  AddMoments(x.get(), kMany, moments);
  for (int64_t lane = 0; lane < 16; ++lane) {
    EXPECT_EQ(moments.count[lane], 5000);
    EXPECT_NEAR(moments.mean[lane], mean[lane], 1e-4);
    EXPECT_NEAR(moments.m2[lane], m2[lane], 1e-4 * m2[lane]);  // a chunk's mean is rounded to 6e-5
  }
}

}  // namespace
}  // namespace ridge::cpu
