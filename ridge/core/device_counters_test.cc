#include "ridge/core/device_counters.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace ridge {
namespace {

TEST(CounterSums, AWindowHasMeansOfLevelsAndTheGrowthOfTotals) {
  CounterSums sums;
  sums.Add({.utilization = 0.5, .power_w = 300, .energy_j = 1000});
  const CounterSums before = sums;
  sums.Add({.utilization = 0.5, .power_w = 400, .energy_j = 1150});
  sums.Add({.utilization = 1.0, .power_w = 500, .energy_j = 1375});
  EXPECT_EQ(sums.Since(before),
            (DeviceCounters{.utilization = 0.75, .power_w = 450, .energy_j = 375}));
  EXPECT_EQ(sums.samples() - before.samples(), 2);
}

TEST(CounterSums, AWindowFromTheBeginCountsTotalsFromTheFirstSample) {
  CounterSums sums;
  sums.Add({.energy_j = 1000, .uncorrected_errors = 7});
  sums.Add({.energy_j = 1150, .uncorrected_errors = 9});
  EXPECT_EQ(sums.Since({}), (DeviceCounters{.energy_j = 150, .uncorrected_errors = 2}));
}

TEST(CounterSums, AWindowWithoutASampleHasTheLevelsOfTheLast) {
  CounterSums sums;
  sums.Add({.temperature_c = 50, .energy_j = 10});
  sums.Add({.temperature_c = 60, .energy_j = 12});
  EXPECT_EQ(sums.Since(sums), (DeviceCounters{.temperature_c = 60, .energy_j = 0}));
}

TEST(CounterSums, WhatNoSampleTellsIsEmpty) {
  EXPECT_EQ(CounterSums().Since({}), DeviceCounters());
  CounterSums sums;
  sums.Add({.power_w = 300});
  EXPECT_EQ(sums.Since({}), DeviceCounters{.power_w = 300});
}

TEST(CounterSums, ASampleThatDoesNotTellAFieldDoesNotCountInItsMean) {
  CounterSums sums;
  sums.Add({.utilization = 1.0});
  const CounterSums before = sums;
  sums.Add({.utilization = 1.0, .sm_share = 0.4});
  sums.Add({.utilization = 1.0, .sm_share = 0.6});
  sums.Add({.utilization = 1.0});
  EXPECT_DOUBLE_EQ(*sums.Since(before).sm_share, 0.5);
}

TEST(CounterSums, ATotalThatBeginsAnewHasNotGrown) {
  CounterSums sums;
  sums.Add({.corrected_errors = 5});
  sums.Add({.corrected_errors = 0});
  EXPECT_EQ(sums.Since({}).corrected_errors, 0);
}

TEST(CounterSums, WindowsAddUpWithoutWhatLiesBetweenThem) {
  CounterSums sums, windows;
  sums.Add({.utilization = 0.5, .energy_j = 100});
  const CounterSums first = sums;
  sums.Add({.utilization = 0.25, .energy_j = 110});
  windows.AddWindow(first, sums);
  sums.Add({.utilization = 0, .energy_j = 120});  // between
  const CounterSums second = sums;
  sums.Add({.utilization = 0.75, .energy_j = 130});
  windows.AddWindow(second, sums);
  EXPECT_EQ(windows.samples(), 2);
  EXPECT_EQ(windows.Since({}), (DeviceCounters{.utilization = 0.5, .energy_j = 30}));
}

TEST(CounterFields, NameEachFieldOnce) {
  std::set<std::string> names;
  DeviceCounters counters;
  for (const CounterField& field : kCounterFields) {
    EXPECT_TRUE(names.insert(field.name).second) << field.name;
    EXPECT_FALSE(counters.*(field.value)) << field.name;
    counters.*(field.value) = 1;
  }
  EXPECT_EQ(sizeof(DeviceCounters), names.size() * sizeof(std::optional<double>));
}

}  // namespace
}  // namespace ridge
