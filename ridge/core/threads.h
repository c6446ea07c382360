// How many cores this process may use, and a small pool for input and output.
//
// Kernels run in one OpenMP team; the pool here is for reading, decoding and writing only.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace ridge {

// The smallest of: cores in the affinity mask, the container's CPU quota (cgroup v1 or v2, rounded
// up), and OMP_NUM_THREADS when it is a positive number.  At least 1.
int AvailableThreads();

// Cores in the affinity mask that the process had when this file was first asked for anything: a
// thread that was pinned since then does not change the answer.
int AllowedCores();
// The calling thread runs on the `index`-th allowed core only (index < AllowedCores()), or on all
// of them again.  Threads inherit the mask of the one that makes them, so those for input and
// output must ask for all.  Where the system refuses, nothing changes.
void PinThread(int index);
void UnpinThread();

// Bytes this process may use: the smaller of the container's limit and available memory.
int64_t AvailableMemoryBytes();

// Runs tasks in the order given on `threads` threads.  The destructor runs what is queued, then
// joins.  Thread-safe.
class ThreadPool {
 public:
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  void Add(std::function<void()> task);  // the task must not throw

 private:
  void Work();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace ridge
