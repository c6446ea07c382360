// ExchangeThread: exchanges beside the step that computes.
//
// Nobody makes progress for a program: a library moves bytes while it is called.  So one thread of
// a rank owns its communicator while jobs are posted, and runs them in the order of their posts,
// which is that of the plan and so the same on all ranks.  What the step itself waits for goes over
// Communicator::urgent() and passes them.
//
// Post() and Wait() allocate nothing.  One thread at a time calls them.
#pragma once
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "ridge/core/status.h"

namespace ridge {

class ExchangeThread {
 public:
  // Something to run.  It outlives its wait.
  class Job {
   public:
    virtual ~Job() = default;
    virtual Status Run() = 0;

   private:
    friend class ExchangeThread;
    bool posted_ = false;
    Status status_;
  };

  // At most so many jobs are posted at the same time.
  explicit ExchangeThread(size_t most_jobs);
  // Waits for what is posted.
  ~ExchangeThread();
  ExchangeThread(const ExchangeThread&) = delete;
  ExchangeThread& operator=(const ExchangeThread&) = delete;

  // REQUIRES: the job is not posted already.
  void Post(Job& job);
  // Returns when the job has run, with what it returned; at once where it was not posted.
  Status Wait(Job& job);
  // Returns when all jobs have run.
  void Drain();

 private:
  void Run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Job*> ring_;
  size_t posted_ = 0, done_ = 0;  // since the start
  bool ends_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace ridge
