#include "ridge/dist/exchange_thread.h"

#include <utility>

namespace ridge {

ExchangeThread::ExchangeThread(size_t most_jobs) : ring_(most_jobs), thread_([this] { Run(); }) {}

ExchangeThread::~ExchangeThread() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void ExchangeThread::Post(Job& job) {
  {
    const std::lock_guard lock(mutex_);
    RIDGE_CHECK(!job.posted_ && posted_ - done_ < ring_.size(), "each job is posted once");
    job.posted_ = true;
    ring_[posted_++ % ring_.size()] = &job;
  }
  changed_.notify_all();
}

Status ExchangeThread::Wait(Job& job) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !job.posted_; });
  return std::exchange(job.status_, Status());
}

void ExchangeThread::Drain() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done_ == posted_; });
}

void ExchangeThread::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ends_ || done_ < posted_; });
    if (done_ == posted_) return;
    Job& job = *ring_[done_ % ring_.size()];
    lock.unlock();
    Status status = job.Run();
    lock.lock();
    job.status_ = std::move(status);
    job.posted_ = false;
    ++done_;
    changed_.notify_all();
  }
}

}  // namespace ridge
