// Three counters are the whole state: released_ <= taken_ <= begun_ <= released_ + slots.  A worker
// waits until the slot begun last has a task or a slot is free, the consumer until the slot after
// those it took is filled.
#include "ridge/data/prefetch.h"

#include <algorithm>
#include <exception>
#include <new>
#include <system_error>
#include <utility>

#include "ridge/core/process.h"
#include "ridge/core/threads.h"

namespace ridge {
namespace {

// What `run` returns, or the Status of what it throws.
template <typename Function>
auto Safely(Function run) -> decltype(run()) {
  try {
    return run();
  } catch (const std::bad_alloc&) {
    return Status(ErrorCode::kOutOfMemory, "data: no memory left while reading samples");
  } catch (const std::exception& error) {
    return Status(ErrorCode::kInternal,
                  std::string("data: while reading samples: ") + error.what());
  }
}

}  // namespace

Prefetch::Prefetch(int slots, SlotFiller filler, int workers)
    : filler_(std::move(filler)), workers_(workers), slots_(static_cast<size_t>(slots)) {
  RIDGE_CHECK(slots >= 1 && workers >= 0, "there is a slot to fill");
}

Prefetch::~Prefetch() { Stop(); }

Status Prefetch::Start() {
  const std::lock_guard<std::mutex> join_lock(join_mutex_);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    RIDGE_CHECK(stop_, "prefetching is started once");
    begun_ = taken_ = released_ = 0;
    stack_bytes_ = 0;
    stop_ = ended_ = false;
    status_ = Status();
  }
  try {
    for (int worker = 0; worker < workers_; ++worker)
      threads_.emplace_back([this, worker] { Work(worker); });
  } catch (const std::system_error& error) {
    if (!threads_.empty()) return Status();  // fewer workers do the same
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
    return Status(ErrorCode::kUnavailable,
                  std::string("data: cannot start the input thread: ") + error.what());
  }
  return Status();
}

bool Prefetch::HasTask() const { return begun_ > 0 && At(begun_ - 1).given < At(begun_ - 1).tasks; }

bool Prefetch::CanBegin() const { return !ended_ && begun_ - released_ < size(); }

bool Prefetch::IsFilled(int64_t count) const { return count < begun_ && At(count).filled; }

void Prefetch::Begin() {
  const int slot = SlotOf(begun_);
  const Result<int> tasks = Safely([&] { return filler_.begin(slot); });
  if (tasks.ok() && *tasks > 0) {
    Filling& filling = At(begun_++);
    filling = Filling{};
    filling.tasks = *tasks;
    return;
  }
  ended_ = true;
  status_ = tasks.status();
  filled_one_.notify_all();
}

Prefetch::Task Prefetch::GiveTask() {
  Filling& filling = At(begun_ - 1);
  return {SlotOf(begun_ - 1), filling.given++};
}

void Prefetch::Finish(const Task& task, const Status& status, std::unique_lock<std::mutex>& lock) {
  Filling& filling = slots_[static_cast<size_t>(task.slot)];
  ++filling.done;
  if (!status.ok()) {
    ended_ = true;
    if (filling.failed_task < 0 || task.number < filling.failed_task) {
      filling.failed_task = task.number;
      filling.status = status;
    }
  }
  if (filling.done < filling.tasks) return;
  if (filling.status.ok()) {
    lock.unlock();
    filler_.filled(task.slot);
    lock.lock();
  }
  filling.filled = true;
  filled_one_.notify_all();
}

void Prefetch::Work(int worker) {
  UnpinThread();  // whoever started us may be pinned to a core of the kernels
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    has_task_.wait(lock, [&] { return stop_ || HasTask() || CanBegin(); });
    if (stop_) {
      stack_bytes_ += ThreadStackBytes();
      return;
    }
    if (!HasTask()) {
      Begin();
      has_task_.notify_all();
      continue;
    }
    const Task task = GiveTask();
    lock.unlock();
    const Status status = Safely([&] { return filler_.run(task.slot, task.number, worker); });
    lock.lock();
    Finish(task, status, lock);
  }
}

Result<Prefetch::Taken> Prefetch::Next() {
  std::unique_lock<std::mutex> lock(mutex_);
  RIDGE_CHECK(taken_ - released_ < size(), "a slot is free: the caller does not hold all of them");
  const auto is_ready = [&] { return stop_ || IsFilled(taken_) || (ended_ && taken_ == begun_); };
  const double start = MonotonicSeconds();
  const bool waits = !is_ready();
  if (waits && workers_ == 0) FillNow(lock);
  if (waits && workers_ > 0) filled_one_.wait(lock, is_ready);
  RIDGE_ASSIGN_OR_RETURN(Taken taken, Take());
  if (waits) taken.wait_seconds = MonotonicSeconds() - start;
  return taken;
}

// REQUIRES: Next's condition holds.
Result<Prefetch::Taken> Prefetch::Take() {
  if (stop_) return Status(ErrorCode::kUnavailable, "data: the input pipeline was stopped");
  if (taken_ == begun_) {
    if (!status_.ok()) return status_;
    return Taken{};
  }
  if (!At(taken_).status.ok()) return At(taken_).status;
  return Taken{SlotOf(taken_++), 0};
}

// There is no other thread.
void Prefetch::FillNow(std::unique_lock<std::mutex>& lock) {
  if (CanBegin()) Begin();
  while (HasTask()) {
    const Task task = GiveTask();
    Finish(task, Safely([&] { return filler_.run(task.slot, task.number, /*worker=*/0); }), lock);
  }
}

void Prefetch::Release(int slot) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (stop_) return;  // nothing is held after Stop
    RIDGE_CHECK(released_ < taken_ && slot == SlotOf(released_),
                "the oldest slot is released first");
    ++released_;
  }
  has_task_.notify_all();
}

void Prefetch::Stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  has_task_.notify_all();
  filled_one_.notify_all();
  const std::lock_guard<std::mutex> join_lock(join_mutex_);
  if (threads_.empty()) return;
  const int64_t before = AllocatedBytes();
  for (std::thread& thread : threads_) thread.join();
  const int64_t kept = std::max<int64_t>(0, before - AllocatedBytes());
  threads_.clear();
  const std::lock_guard<std::mutex> lock(mutex_);
  thread_bytes_ = std::max(thread_bytes_, kept + stack_bytes_);
}

int64_t Prefetch::thread_bytes() const {
  const std::lock_guard<std::mutex> join_lock(join_mutex_);
  return thread_bytes_;
}

}  // namespace ridge
