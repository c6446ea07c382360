#include "ridge/plan/cost/sum_times.h"

#include <gtest/gtest.h>

namespace ridge {
namespace {

SumTimes Table() {
  SumTimes times;
  times.device = "cpu-test-1";
  times.mpi = "Open MPI 4.1.4";
  times.ranks = 2;
  times.join_bytes = 9000;
  times.made_at = "2026-01-01T00:00:00Z";
  times.sums = {{1000, 1.0, 0.5}, {4000, 2.0, 1.5}, {16000, 5.0, 3.0}};
  return times;
}

TEST(SumTimesTest, SecondsAreLinearBetweenTheSizesThatWereMeasured) {
  const SumTimes times = Table();
  EXPECT_DOUBLE_EQ(times.Seconds(1000), 1.0);
  EXPECT_DOUBLE_EQ(times.Seconds(2500), 1.5);
  EXPECT_DOUBLE_EQ(times.Seconds(4000), 2.0);
  EXPECT_DOUBLE_EQ(times.Seconds(10000), 3.5);
}

TEST(SumTimesTest, SmallSumsTakeAsLongAsTheSmallestAndLargeOnesGoOnAtTheLastRate) {
  EXPECT_DOUBLE_EQ(Table().Seconds(int64_t{10}), 1.0);
  EXPECT_DOUBLE_EQ(Table().Seconds(28000), 8.0);
}

TEST(SumTimesTest, OneSizeIsEverySize) {
  SumTimes times = Table();
  times.sums.resize(1);
  EXPECT_DOUBLE_EQ(times.Seconds(int64_t{1} << 30), 1.0);
}

TEST(SumTimesTest, WhatGoesAsBF16HasTimesOfItsOwn) {
  const SumTimes times = Table();
  EXPECT_DOUBLE_EQ(times.Seconds(2500, /*bf16=*/true), 1.0);
  EXPECT_DOUBLE_EQ(times.Seconds({8, 1, 2}, {4096, {{64, 4096}}}), times.Seconds(4096, true));
}

// Of three slices on two ranks the second one has two parts: it sends one half as much again.
TEST(SumTimesTest, ARankOfSeveralPartsTakesLonger) {
  const SumTimes times = Table();
  const WireBlock block = {4096};
  EXPECT_DOUBLE_EQ(times.Seconds({2, 0, 2}, block), times.Seconds(4096));
  EXPECT_DOUBLE_EQ(times.Seconds({8, 1, 2}, block), times.Seconds(4096));
  EXPECT_GT(times.Seconds({6, 0, 2}, block), times.Seconds(4096));
  EXPECT_DOUBLE_EQ(times.Seconds({6, 0, 2}, block), times.Seconds({6, 1, 2}, block));
}

TEST(SumTimesTest, TextAndBackIsTheSame) {
  const SumTimes times = Table();
  const Result<SumTimes> read = SumTimesFromJson(SumTimesToJson(times), "sums.json");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(SumTimesToJson(*read), SumTimesToJson(times));
}

TEST(SumTimesTest, DamagedFilesAreRefused) {
  EXPECT_EQ(SumTimesFromJson("{", "f").status().code(), ErrorCode::kInvalidData);
  SumTimes times = Table();
  std::swap(times.sums[0], times.sums[1]);
  EXPECT_EQ(SumTimesFromJson(SumTimesToJson(times), "f").status().message(),
            "f: its sums are no table by bytes. hint: ridge bench collective");
  times = Table();
  times.sums[1].bf16_seconds = 0;
  EXPECT_FALSE(SumTimesFromJson(SumTimesToJson(times), "f").ok());
  times.sums.clear();
  EXPECT_FALSE(SumTimesFromJson(SumTimesToJson(times), "f").ok());
}

}  // namespace
}  // namespace ridge
