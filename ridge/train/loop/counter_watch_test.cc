#include "ridge/train/loop/counter_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

namespace ridge {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Tells what the test says, as often as the test lets it.
class GatedSource : public CounterSource {
 public:
  DeviceCounters Read() override {
    std::unique_lock hold(lock_);
    ++asked_;
    changed_.notify_all();
    changed_.wait(hold, [this] { return open_ || asked_ <= allowed_; });
    return now_;
  }
  void Set(const DeviceCounters& now) {
    const std::lock_guard hold(lock_);
    now_ = now;
  }
  // So many samples more; they are in the sums when it returns.
  void Sample(int64_t more) {
    std::unique_lock hold(lock_);
    allowed_ += more;
    changed_.notify_all();
    changed_.wait(hold, [this] { return asked_ > allowed_; });
  }
  void Open() {
    const std::lock_guard hold(lock_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex lock_;
  std::condition_variable changed_;
  DeviceCounters now_ = {.utilization = 1};
  int64_t asked_ = 0, allowed_ = 1;  // the first one comes when the watch begins
  bool open_ = false;
};

class CounterWatchTest : public testing::Test {
 protected:
  CounterWatchTest()
      : watch_(&source_, [this](const std::string& text) { said_.push_back(text); },
               {.period_s = 1e-4, .window = 5}) {}
  ~CounterWatchTest() override { source_.Open(); }

  // Updates with a sample each.
  void Train(int64_t updates, double wait_s = 0) {
    for (int64_t i = 0; i < updates; ++i) {
      source_.Sample(1);
      watch_.Add(/*step_s=*/1, wait_s);
    }
  }
  void Stop() {
    source_.Open();
    watch_.Stop();
  }

  GatedSource source_;
  std::vector<std::string> said_;
  CounterWatch watch_;
};

TEST_F(CounterWatchTest, JudgesWholeWindowsOfUpdates) {
  source_.Set({.utilization = 0.4});
  Train(5);  // the first begins the window
  EXPECT_THAT(said_, IsEmpty());
  Train(1);
  EXPECT_THAT(said_, ElementsAre(HasSubstr("40 % of the last 5.00 s: it waited for launches")));
  Train(20);
  EXPECT_EQ(said_.size(), 1);
}

TEST_F(CounterWatchTest, KnowsHowLongTheUpdatesWaited) {
  source_.Set({.utilization = 0.4});
  Train(6, /*wait_s=*/0.6);
  EXPECT_THAT(said_, ElementsAre(HasSubstr("steps waited for data in 60 %")));
}

TEST_F(CounterWatchTest, JudgesNoTimeInWhichSomethingElseRan) {
  for (int epoch = 0; epoch < 3; ++epoch) {
    source_.Set({.utilization = 1});
    Train(8);
    source_.Set({.utilization = 0});
    watch_.Pause();
    source_.Sample(10);  // a checkpoint
    watch_.Resume();
    Train(1);  // of the time before it
  }
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(CounterWatchTest, ShortEpochsAddUpToAWindow) {
  source_.Set({.utilization = 0.4});
  for (int epoch = 0; epoch < 2; ++epoch) {
    EXPECT_THAT(said_, IsEmpty());
    Train(4, /*wait_s=*/0.6);  // three samples, and two
    watch_.Pause();
    watch_.Resume();
  }
  EXPECT_THAT(said_, ElementsAre(HasSubstr("the last 5.00 s: steps waited for data in 60 %")));
}

TEST_F(CounterWatchTest, TellsErrorsAtTheEndOfAShortRun) {
  source_.Set({.uncorrected_errors = 4});
  source_.Sample(1);
  source_.Set({.uncorrected_errors = 7});
  Stop();
  EXPECT_THAT(said_, ElementsAre(HasSubstr("3 errors")));
}

TEST_F(CounterWatchTest, AReportHasWhatCameSinceTheOneBefore) {
  EXPECT_EQ(watch_.SinceReport(), DeviceCounters{.utilization = 1});
  source_.Set({.utilization = 0.5});
  source_.Sample(1);
  EXPECT_EQ(watch_.SinceReport(), DeviceCounters{.utilization = 0.75});
  watch_.EndReport();
  source_.Set({.utilization = 0.25});
  source_.Sample(2);
  EXPECT_EQ(watch_.SinceReport(), DeviceCounters{.utilization = 0.25});
}

TEST_F(CounterWatchTest, CountsTheEnergyOfTheWholeRun) {
  source_.Set({.energy_j = 1000});
  source_.Sample(2);
  watch_.EndReport();
  source_.Set({.energy_j = 1400});
  Stop();
  EXPECT_EQ(watch_.energy_j(), 400);
}

TEST(CounterWatchAlone, WithoutASourceDoesNothing) {
  CounterWatch watch(nullptr, [](const std::string& text) { ADD_FAILURE() << text; }, {});
  watch.Add(1, 1);
  watch.Pause();
  watch.Resume();
  watch.EndReport();
  EXPECT_EQ(watch.SinceReport(), DeviceCounters());
  watch.Stop();
  EXPECT_FALSE(watch.energy_j());
}

}  // namespace
}  // namespace ridge
