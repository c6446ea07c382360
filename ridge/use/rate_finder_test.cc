#include "ridge/use/rate_finder.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ridge {
namespace {

// 100 rates from 1e-7 to 1, as `--schedule ramp` has them.
std::vector<RatePoint> Losses(double (*loss)(double)) {
  std::vector<RatePoint> points;
  for (int i = 0; i < 100; ++i) {
    const double lr = std::pow(1e-7, 1 - i / 99.0);
    points.push_back({lr, loss(lr)});
  }
  return points;
}

// Flat, falling around 1e-3, lowest at about 3e-2, then rising without bound.
double Usual(double lr) { return 2.3 - 1.5 / (1 + 1e-3 / lr) + 30 * lr * lr; }

TEST(RateFinder, SuggestsARateThatFallsFastAndLiesBelowTheLowestLoss) {
  const Result<RateFinding> found = FindRate(Losses(Usual));
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_GT(found->steepest_lr, 2e-4);
  EXPECT_LT(found->steepest_lr, 1e-2);
  EXPECT_GT(found->lowest_lr, 1e-2);
  EXPECT_LE(found->suggested_lr, found->lowest_lr / 10);
  EXPECT_LE(found->suggested_lr, found->steepest_lr);
  EXPECT_TRUE(found->diverged);
}

TEST(RateFinder, WhatComesAfterTheDivergenceChangesNothing) {
  std::vector<RatePoint> points = Losses(Usual);
  const Result<RateFinding> whole = FindRate(points);
  ASSERT_TRUE(whole.ok());
  for (size_t i = whole->smoothed.size(); i < points.size(); ++i) points[i].loss = 1e30;
  EXPECT_EQ(FindRate(points)->suggested_lr, whole->suggested_lr);
  points.resize(whole->smoothed.size() + 1);
  points.back().loss = NAN;
  EXPECT_EQ(FindRate(points)->suggested_lr, whole->suggested_lr);
}

TEST(RateFinder, SingleNoisyLossesMoveTheSuggestionByNoMoreThanAFewSteps) {
  std::vector<RatePoint> points = Losses(Usual);
  const double quiet = FindRate(points)->suggested_lr;
  for (size_t i = 3; i < 60; i += 7) points[i].loss += i % 2 == 0 ? 0.1 : -0.1;
  const double noisy = FindRate(points)->suggested_lr;
  EXPECT_GT(noisy, quiet / 5);
  EXPECT_LT(noisy, quiet * 5);
}

TEST(RateFinder, LossesThatTellNothingAreRefused) {
  EXPECT_EQ(FindRate(Losses([](double) { return 2.3; })).status().message(),
            "the loss never falls by 2 %, from 2.3. hint: more --steps, or a larger --batch");
  EXPECT_EQ(FindRate(Losses([](double lr) { return lr > 1e-6 ? NAN : 1.0; })).status().code(),
            ErrorCode::kInvalidData);
  EXPECT_EQ(
      FindRate({}).status().message(),
      "only 0 of 0 losses are finite, at least 10 are needed. hint: look for NaN in the data");
}

TEST(RateFinder, ALossThatOnlyFallsSuggestsATenthOfTheLargestRate) {
  const Result<RateFinding> found =
      FindRate(Losses([](double lr) { return 2 - 0.1 * std::log(lr / 1e-7); }));
  ASSERT_TRUE(found.ok());
  EXPECT_FALSE(found->diverged);
  EXPECT_EQ(found->lowest_lr, 1);
  EXPECT_LE(found->suggested_lr, 0.1);
}

}  // namespace
}  // namespace ridge
