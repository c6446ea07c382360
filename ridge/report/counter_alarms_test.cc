#include "ridge/report/counter_alarms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ridge {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

CounterWindow Window(const DeviceCounters& counters, double wait_s = 0.2) {
  return {.counters = counters, .seconds = 10, .wait_s = wait_s};
}

const DeviceCounters kFine = {.utilization = 0.97,
                              .sm_share = 0.9,
                              .bandwidth_share = 0.66,
                              .thermal_limit = 0.05,
                              .power_limit = 0.4,
                              .clock_setting = 0.4,
                              .corrected_errors = 3,
                              .uncorrected_errors = 0};

std::vector<std::string> Said(const DeviceCounters& counters, double wait_s = 0.2) {
  return CounterAlarms().Judge(Window(counters, wait_s));
}

TEST(CounterAlarms, SayNothingOfAFineRunOrOneWithoutCounters) {
  EXPECT_THAT(Said(kFine), IsEmpty());
  EXPECT_THAT(Said({}), IsEmpty());
}

TEST(CounterAlarms, OfAnIdleGpuNameTheInputWhereStepsWaitForIt) {
  EXPECT_THAT(Said({.utilization = 0.45}, /*wait_s=*/4.8),
              ElementsAre("the GPU had work in 45 % of the last 10.0 s: steps waited for data in "
                          "48 %. hint: more --workers; `ridge data SPEC --bench` times reading by "
                          "stage"));
}

TEST(CounterAlarms, OfAnIdleGpuNameLaunchesWhereNothingRan) {
  const auto sentence = ElementsAre(
      "the GPU had work in 45 % of the last 10.0 s: it waited for launches, not for data (2 %). "
      "hint: a larger --batch gives each launch more work");
  EXPECT_THAT(Said({.utilization = 0.45}), sentence);
  EXPECT_THAT(Said({.utilization = 0.45, .sm_share = 0.4}), sentence);
}

TEST(CounterAlarms, OfAnIdleGpuNameSmallKernelsWhereThoseRan) {
  EXPECT_THAT(Said({.utilization = 0.98, .sm_share = 0.41}),
              ElementsAre("kernels ran in 98 % of the last 10.0 s and kept 41 % of the SMs busy: "
                          "they are small for this GPU. hint: a larger --batch"));
}

TEST(CounterAlarms, OfHeatHaveTemperatureAndClock) {
  DeviceCounters hot = kFine;
  hot.thermal_limit = 0.6;
  hot.temperature_c = 88;
  hot.clock_mhz = 1290;
  EXPECT_THAT(Said(hot),
              ElementsAre("heat held the GPU's clock down in 60 % of the last 10.0 s (88 C, 1290 "
                          "MHz). hint: better cooling; nvidia-smi -q -d TEMPERATURE has the "
                          "limits"));
}

TEST(CounterAlarms, OfPowerHaveWhatIsKnown) {
  DeviceCounters limited = kFine;
  limited.power_limit = 0.8;
  EXPECT_THAT(Said(limited),
              ElementsAre("the power limit held the GPU's clock down in 80 % of the last 10.0 s. "
                          "hint: nvidia-smi -q -d POWER has the limit"));
  limited.power_w = 700;
  EXPECT_THAT(Said(limited), ElementsAre(testing::HasSubstr("10.0 s (700 W). hint")));
}

TEST(CounterAlarms, OfASettingHaveTheClock) {
  DeviceCounters set = kFine;
  set.clock_setting = 1;
  set.clock_mhz = 1200;
  EXPECT_THAT(Said(set),
              ElementsAre("a setting held the GPU's clock down in 100 % of the last 10.0 s (1200 "
                          "MHz). hint: nvidia-smi -q -d CLOCK has it, and nvidia-smi -rac or -rgc "
                          "takes it back"));
}

TEST(CounterAlarms, OfBandwidthHaveWhatIsLeft) {
  DeviceCounters bound = kFine;
  bound.bandwidth_share = 0.8;
  EXPECT_THAT(Said(bound),
              ElementsAre("memory moved 80 % of its peak bytes in the last 10.0 s, which leaves "
                          "1.25 x: steps wait for memory. hint: ridge profile names the nodes"));
}

TEST(CounterAlarms, OfErrorsCountThoseThatWereNotCorrected) {
  DeviceCounters broken = kFine;
  broken.uncorrected_errors = 2;
  EXPECT_THAT(Said(broken),
              ElementsAre("the GPU's memory had 2 errors that ECC could not correct: what it "
                          "computed since may be wrong. hint: nvidia-smi -q -d ECC has the counts; "
                          "reset the GPU, and train again"));
  EXPECT_THAT(CounterAlarms().JudgeErrors(kFine), IsEmpty());
  EXPECT_THAT(CounterAlarms().JudgeErrors(broken), ElementsAre(testing::HasSubstr("2 errors")));
}

TEST(CounterAlarms, AreSaidOnceEach) {
  CounterAlarms alarms;
  DeviceCounters bad = {.utilization = 0.3, .thermal_limit = 1, .power_limit = 1};
  EXPECT_EQ(alarms.Judge(Window(bad)).size(), 3);
  EXPECT_THAT(alarms.Judge(Window(bad, /*wait_s=*/9)), IsEmpty());
  bad.uncorrected_errors = 1;
  EXPECT_EQ(alarms.Judge(Window(bad)).size(), 1);
  EXPECT_THAT(alarms.JudgeErrors(bad), IsEmpty());
}

}  // namespace
}  // namespace ridge
