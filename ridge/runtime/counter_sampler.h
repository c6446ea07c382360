// CounterSampler: a thread that reads a device's counters at a fixed period and adds them up.
//
// The thread that trains reads sums: a lock that is held for a copy, and no call of the device's.
#pragma once
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "ridge/core/device_counters.h"

namespace ridge {

class CounterSampler {
 public:
  // Reads at once, then every `period_s` on the thread, and once more when it stops.  `source`
  // outlives it.
  CounterSampler(CounterSource& source, double period_s);
  ~CounterSampler() { Stop(); }
  CounterSampler(const CounterSampler&) = delete;
  CounterSampler& operator=(const CounterSampler&) = delete;

  // Ends the thread, and waits for it.  Any number of times.
  void Stop();

  int64_t samples() const { return samples_.load(std::memory_order_relaxed); }
  CounterSums Sums() const;  // since it began

 private:
  void Run();
  void Sample();
  bool Wait();  // a period; false when it is to stop

  CounterSource& source_;
  const double period_s_;
  std::atomic<int64_t> samples_{0};
  mutable std::mutex lock_;  // of all below
  std::condition_variable changed_;
  CounterSums sums_;
  bool stops_ = false;
  std::thread thread_;
};

}  // namespace ridge
