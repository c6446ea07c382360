#include "ridge/train/loop/counter_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace ridge {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Tells what the test says.
class SetSource : public CounterSource {
 public:
  DeviceCounters Read() override {
    ++readings;
    return {.utilization = utilization.load(),
            .power_w = 400,
            .energy_j = 200.0 * static_cast<double>(readings),
            .uncorrected_errors = errors.load()};
  }
  std::atomic<double> utilization{1}, errors{0};
  std::atomic<int64_t> readings{0};
};

class CounterWatchTest : public testing::Test {
 protected:
  CounterWatchTest()
      : watch_(&source_, [this](const std::string& text) { said_.push_back(text); },
               {.period_s = 1e-4, .window = 5}) {}

  void WaitForSamples(int64_t more) {
    const int64_t until = source_.readings + more;
    while (source_.readings < until) std::this_thread::yield();
  }
  // Updates until so many samples more.
  void Train(int64_t more, double wait_s = 0) {
    for (int64_t i = 0; i < more; ++i) {
      WaitForSamples(1);
      watch_.Add(/*step_s=*/1, wait_s);
    }
  }

  SetSource source_;
  std::vector<std::string> said_;
  CounterWatch watch_;
};

TEST_F(CounterWatchTest, JudgesWholeWindowsOfUpdates) {
  source_.utilization = 0.4;
  Train(2);
  EXPECT_THAT(said_, IsEmpty());
  Train(20);
  EXPECT_THAT(said_, ElementsAre(HasSubstr("it waited for launches")));
}

TEST_F(CounterWatchTest, KnowsHowLongTheUpdatesWaited) {
  source_.utilization = 0.4;
  Train(20, /*wait_s=*/0.6);
  EXPECT_THAT(said_, ElementsAre(HasSubstr("steps waited for data in 60 %")));
}

TEST_F(CounterWatchTest, JudgesNoTimeInWhichSomethingElseRan) {
  for (int epoch = 0; epoch < 5; ++epoch) {
    source_.utilization = 1;
    Train(3);
    source_.utilization = 0;
    WaitForSamples(10);  // a checkpoint
    watch_.Interrupt();
    source_.utilization = 1;
    WaitForSamples(2);
  }
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(CounterWatchTest, TellsErrorsAtTheEndOfAShortRun) {
  WaitForSamples(1);
  source_.errors = 3;
  watch_.Stop();
  EXPECT_THAT(said_, ElementsAre(HasSubstr("3 errors")));
}

TEST_F(CounterWatchTest, AReportHasWhatCameSinceTheOneBefore) {
  WaitForSamples(3);
  EXPECT_EQ(watch_.SinceReport().power_w, 400);
  EXPECT_EQ(watch_.SinceReport().utilization, 1);
  source_.utilization = 0.5;
  WaitForSamples(2);  // the first may have begun before
  watch_.EndReport();
  WaitForSamples(2);
  EXPECT_EQ(watch_.SinceReport().utilization, 0.5);
}

TEST_F(CounterWatchTest, CountsTheEnergyOfTheWholeRun) {
  WaitForSamples(4);
  watch_.Stop();
  EXPECT_DOUBLE_EQ(*watch_.energy_j(), 200.0 * static_cast<double>(source_.readings - 1));
}

TEST(CounterWatchAlone, WithoutASourceDoesNothing) {
  CounterWatch watch(nullptr, [](const std::string& text) { ADD_FAILURE() << text; }, {});
  watch.Add(1, 1);
  watch.Interrupt();
  watch.EndReport();
  EXPECT_EQ(watch.SinceReport(), DeviceCounters());
  watch.Stop();
  EXPECT_FALSE(watch.energy_j());
}

}  // namespace
}  // namespace ridge
