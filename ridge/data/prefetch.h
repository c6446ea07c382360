// Prefetch: fills the caller's slots in a circle from background threads, ahead of their use.
//
// It knows nothing of what is in a slot.  A slot is filled by tasks, such as one a sample, that the
// workers share in order; slots are given out and come back in the order in which they were begun.
// Without threads Next fills, in the same order, for tests and for debugging.
//
// Threads: Next and Release belong to one consumer; Stop may be called by any thread.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "ridge/core/status.h"

namespace ridge {

// How a slot is filled.  Exceptions of both functions become a Status.
struct SlotFiller {
  // The tasks of slot `slot`, which is filled next; 0: there is nothing more.  Called in order, by
  // one thread at a time.
  std::function<Result<int>(int slot)> begin;
  // One task, 0 <= task < tasks of the slot; several run at once, one a worker.
  std::function<Status(int slot, int task, int worker)> run;
  // Called behind a slot's last task, before the slot is given out, by the thread that ran it;
  // slots at once.  Not where a task failed.
  std::function<void(int slot)> filled = [](int) {};
};

class Prefetch {
 public:
  struct Taken {
    int slot = -1;  // -1: the end
    double wait_seconds = 0;
  };

  // `workers` threads; 0: Next fills, as worker 0.  REQUIRES: slots >= 1, workers >= 0.
  Prefetch(int slots, SlotFiller filler, int workers);
  ~Prefetch();  // stops
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  // Begins with slot 0.  REQUIRES: never started, or stopped.
  Status Start();

  // Waits for the next slot.  After an error first the slots filled before it, then the error of
  // its slot's first task that failed, each time; after Stop kUnavailable.
  // REQUIRES: not all slots are held by the caller.
  Result<Taken> Next();

  // Lets the slot be filled again.  REQUIRES: it is the oldest one held.
  void Release(int slot);

  // Ends the threads after the tasks at work; filled slots are forgotten.  Wakes a waiting Next.
  void Stop();

  // What the threads were measured to take, at the Stop that ended most: their stacks, and what
  // libraries keep for them.
  int64_t thread_bytes() const;

 private:
  // A slot between its begin and its release.
  struct Filling {
    int tasks = 0;
    int given = 0;  // to workers
    int done = 0;
    bool filled = false;
    int failed_task = -1;  // the first one
    Status status;
  };
  struct Task {
    int slot = 0;
    int number = 0;
  };

  void Work(int worker);
  bool HasTask() const;
  bool CanBegin() const;
  bool IsFilled(int64_t count) const;
  void Begin();
  void Finish(const Task& task, const Status& status, std::unique_lock<std::mutex>& lock);
  Task GiveTask();
  Result<Taken> Take();
  void FillNow(std::unique_lock<std::mutex>& lock);
  Filling& At(int64_t count) { return slots_[static_cast<size_t>(SlotOf(count))]; }
  const Filling& At(int64_t count) const { return slots_[static_cast<size_t>(SlotOf(count))]; }
  int64_t size() const { return static_cast<int64_t>(slots_.size()); }
  int SlotOf(int64_t count) const { return static_cast<int>(count % size()); }

  const SlotFiller filler_;
  const int workers_;
  std::mutex mutex_;  // guards all below up to join_mutex_
  std::condition_variable filled_one_;
  std::condition_variable has_task_;
  std::vector<Filling> slots_;
  int64_t begun_ = 0;  // slots since Start
  int64_t taken_ = 0;
  int64_t released_ = 0;
  bool stop_ = true;
  bool ended_ = false;       // by the end of the data or by status_: no slot is begun any more
  Status status_;            // of `begin`
  int64_t stack_bytes_ = 0;  // of the threads that ended since Start
  mutable std::mutex join_mutex_;  // guards all below
  std::vector<std::thread> threads_;
  int64_t thread_bytes_ = 0;
};

}  // namespace ridge
