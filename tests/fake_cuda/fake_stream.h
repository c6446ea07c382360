// Streams and events of the fake driver.
//
// A stream is a thread with a queue, which draws a delay before each piece of work: what no event
// orders goes wrong soon.  After an error that stays, work is skipped; events are still reached.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <thread>

#include "tests/fake_cuda/fake_state.h"

namespace ridge::fake_cuda {

class Stream {
 public:
  explicit Stream(uint32_t seed);
  ~Stream();  // after its work is done

  // run(skipped)
  void Push(std::function<DriverCode(bool skipped)> run);
  void Synchronize();

 private:
  void Loop();
  void Delay();

  std::mutex lock_;
  std::condition_variable changed_;
  std::deque<std::function<DriverCode(bool)>> waiting_;
  bool busy_ = false, stop_ = false;
  std::mt19937 draw_;
  std::thread thread_;
};

// All streams of the process.
void SynchronizeAll();

class Event {
 public:
  void Record(Stream& stream);
  void WaitOn(Stream& stream);  // for the last record; nothing before the first
  // Fails with kInvalidHandle without a record, with kNotReady before it was reached.
  DriverCode Seconds(double* seconds) const;

 private:
  // Shared with the work that waits for it.
  struct Reached {
    std::mutex lock;
    std::condition_variable changed;
    int64_t recorded = 0, done = 0;
    double seconds = 0;
  };
  std::shared_ptr<Reached> reached_ = std::make_shared<Reached>();
};

}  // namespace ridge::fake_cuda
