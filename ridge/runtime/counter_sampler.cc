#include "ridge/runtime/counter_sampler.h"

#include <chrono>

namespace ridge {

CounterSampler::CounterSampler(CounterSource& source, double period_s)
    : source_(source), period_s_(period_s) {
  Sample();
  thread_ = std::thread([this] { Run(); });
}

void CounterSampler::Stop() {
  {
    const std::lock_guard hold(lock_);
    stops_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

CounterSums CounterSampler::Sums() const {
  const std::lock_guard hold(lock_);
  return sums_;
}

void CounterSampler::Run() {
  while (Wait()) Sample();
  Sample();
}

void CounterSampler::Sample() {
  const DeviceCounters counters = source_.Read();
  const std::lock_guard hold(lock_);
  sums_.Add(counters);
  samples_.store(sums_.samples(), std::memory_order_relaxed);
}

bool CounterSampler::Wait() {
  std::unique_lock hold(lock_);
  return !changed_.wait_for(hold, std::chrono::duration<double>(period_s_),
                            [this] { return stops_; });
}

}  // namespace ridge
