#include "ridge/runtime/counter_sampler.h"

#include <gtest/gtest.h>

namespace ridge {
namespace {

constexpr double kNever_s = 3600, kAlways_s = 1e-4;

// Each reading is one watt more than the one before.
class CountingSource : public CounterSource {
 public:
  DeviceCounters Read() override {
    const int64_t n = ++readings_;
    return {.power_w = static_cast<double>(n), .energy_j = static_cast<double>(10 * n)};
  }
  int64_t readings() const { return readings_; }

 private:
  std::atomic<int64_t> readings_{0};
};

void WaitFor(const CounterSampler& sampler, int64_t samples) {
  while (sampler.samples() < samples) std::this_thread::yield();
}

TEST(CounterSampler, ReadsOnceWhenItBeginsAndOnceWhenItStops) {
  CountingSource source;
  CounterSampler sampler(source, kNever_s);
  EXPECT_EQ(source.readings(), 1);
  sampler.Stop();
  EXPECT_EQ(source.readings(), 2);
  EXPECT_EQ(sampler.Sums().Since({}), (DeviceCounters{.power_w = 1.5, .energy_j = 10}));
}

TEST(CounterSampler, NeverReadsAfterItHasStopped) {
  CountingSource source;
  CounterSampler sampler(source, kAlways_s);
  WaitFor(sampler, 5);
  sampler.Stop();
  const int64_t readings = source.readings();
  sampler.Stop();
  std::this_thread::yield();
  EXPECT_EQ(source.readings(), readings);
  EXPECT_EQ(sampler.samples(), readings);
}

TEST(CounterSampler, StopsInsteadOfWaitingForItsPeriod) {
  CountingSource source;
  { const CounterSampler sampler(source, kNever_s); }
  EXPECT_EQ(source.readings(), 2);
}

TEST(CounterSampler, SumsHoldEachSampleOnce) {
  CountingSource source;
  CounterSampler sampler(source, kAlways_s);
  WaitFor(sampler, 20);
  sampler.Stop();
  const auto n = static_cast<double>(sampler.samples());
  EXPECT_DOUBLE_EQ(*sampler.Sums().Since({}).power_w, (n + 1) / 2);
}

}  // namespace
}  // namespace ridge
