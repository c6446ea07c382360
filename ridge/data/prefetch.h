// Prefetch: fills the caller's slots in a circle from one background thread, ahead of their use.
//
// It knows nothing of what is in a slot.  Slots are given out and come back in the order of
// filling. Without the thread it fills in Next, in the same order, for tests and for debugging.
//
// Threads: Next and Release belong to one consumer; Stop may be called by any thread.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

#include "ridge/core/status.h"

namespace ridge {

class Prefetch {
 public:
  // Writes slot `slot`; false when there is nothing more.  May throw: that becomes a Status.
  using Fill = std::function<Result<bool>(int slot)>;

  struct Taken {
    int slot = -1;  // -1: the end
    double wait_seconds = 0;
  };

  // REQUIRES: slots >= 1.
  Prefetch(int slots, Fill fill, bool background);
  ~Prefetch();  // stops
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  // Begins with slot 0.  REQUIRES: never started, or stopped.
  Status Start();

  // Waits for the next slot.  After an error of `fill`, first the slots filled before it, then the
  // error, each time; after Stop kUnavailable.  REQUIRES: not all slots are held by the caller.
  Result<Taken> Next();

  // Lets the slot be filled again.  REQUIRES: it is the oldest one held.
  void Release(int slot);

  // Ends the thread after the fill at work; filled slots are forgotten.  Wakes a waiting Next.
  void Stop();

 private:
  void Work();
  Result<bool> FillSafely(int slot);
  Result<Taken> FillNow();
  int SlotOf(int64_t count) const { return static_cast<int>(count % slots_); }

  const int slots_;
  const Fill fill_;
  const bool background_;
  std::mutex mutex_;  // guards all below but thread_
  std::condition_variable filled_one_;
  std::condition_variable freed_one_;
  int64_t filled_ = 0;  // slots since Start
  int64_t taken_ = 0;
  int64_t released_ = 0;
  bool stop_ = true;
  bool ended_ = false;  // by the end of the data or by status_
  Status status_;
  std::mutex join_mutex_;  // guards thread_
  std::thread thread_;
};

}  // namespace ridge
