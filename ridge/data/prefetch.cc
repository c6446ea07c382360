// Three counters are the whole state: released_ <= taken_ <= filled_ <= released_ + slots_.  The
// thread waits until the last relation is strict, the consumer until the middle one is.
#include "ridge/data/prefetch.h"

#include <exception>
#include <new>
#include <system_error>
#include <utility>

#include "ridge/core/process.h"
#include "ridge/core/threads.h"

namespace ridge {

Prefetch::Prefetch(int slots, Fill fill, bool background)
    : slots_(slots), fill_(std::move(fill)), background_(background) {
  RIDGE_CHECK(slots >= 1, "there is a slot to fill");
}

Prefetch::~Prefetch() { Stop(); }

Status Prefetch::Start() {
  const std::lock_guard<std::mutex> join_lock(join_mutex_);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    RIDGE_CHECK(stop_, "prefetching is started once");
    filled_ = taken_ = released_ = 0;
    stop_ = ended_ = false;
    status_ = Status();
  }
  if (!background_) return Status();
  try {
    thread_ = std::thread([this] { Work(); });
  } catch (const std::system_error& error) {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
    return Status(ErrorCode::kUnavailable,
                  std::string("data: cannot start the input thread: ") + error.what());
  }
  return Status();
}

void Prefetch::Work() {
  UnpinThread();  // whoever started us may be pinned to a core of the kernels
  while (true) {
    int slot = 0;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      freed_one_.wait(lock, [&] { return stop_ || filled_ - released_ < slots_; });
      if (stop_) return;
      slot = SlotOf(filled_);
    }
    const Result<bool> more = FillSafely(slot);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (more.ok() && *more) {
      ++filled_;
    } else {
      ended_ = true;
      status_ = more.status();
    }
    filled_one_.notify_all();
    if (ended_) return;
  }
}

Result<bool> Prefetch::FillSafely(int slot) {
  try {
    return fill_(slot);
  } catch (const std::bad_alloc&) {
    return Status(ErrorCode::kOutOfMemory, "data: no memory left while reading samples");
  } catch (const std::exception& error) {
    return Status(ErrorCode::kInternal,
                  std::string("data: while reading samples: ") + error.what());
  }
}

Result<Prefetch::Taken> Prefetch::Next() {
  if (!background_) return FillNow();
  std::unique_lock<std::mutex> lock(mutex_);
  RIDGE_CHECK(taken_ - released_ < slots_, "a slot is free: the caller does not hold all of them");
  const auto is_ready = [&] { return stop_ || ended_ || taken_ < filled_; };
  Taken taken;
  if (!is_ready()) {
    const double start = MonotonicSeconds();
    filled_one_.wait(lock, is_ready);
    taken.wait_seconds = MonotonicSeconds() - start;
  }
  if (stop_) return Status(ErrorCode::kUnavailable, "data: the input pipeline was stopped");
  if (taken_ < filled_) {
    taken.slot = SlotOf(taken_++);
    return taken;
  }
  if (!status_.ok()) return status_;
  return taken;
}

Result<Prefetch::Taken> Prefetch::FillNow() {
  const std::lock_guard<std::mutex> lock(mutex_);
  RIDGE_CHECK(taken_ - released_ < slots_, "a slot is free: the caller does not hold all of them");
  if (stop_) return Status(ErrorCode::kUnavailable, "data: the input pipeline was stopped");
  Taken taken;
  const double start = MonotonicSeconds();
  if (!ended_) {
    const Result<bool> more = FillSafely(SlotOf(taken_));
    ended_ = !more.ok() || !*more;
    status_ = more.status();
  }
  if (!status_.ok()) return status_;
  if (!ended_) taken.slot = SlotOf(taken_++);
  taken.wait_seconds = MonotonicSeconds() - start;
  return taken;
}

void Prefetch::Release(int slot) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (stop_) return;  // nothing is held after Stop
    RIDGE_CHECK(released_ < taken_ && slot == SlotOf(released_),
                "the oldest slot is released first");
    ++released_;
  }
  freed_one_.notify_one();
}

void Prefetch::Stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  freed_one_.notify_all();
  filled_one_.notify_all();
  const std::lock_guard<std::mutex> join_lock(join_mutex_);
  if (thread_.joinable()) thread_.join();
}

}  // namespace ridge
