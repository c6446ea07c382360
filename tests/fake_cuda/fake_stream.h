// Streams and events of the fake driver.
//
// A stream is a thread with a queue, which draws a delay before each piece of work: what no event
// orders goes wrong soon.  A lazy one is as late as CUDA allows, whatever the load of the machine:
// it begins when somebody waits for it.  After an error that stays, work is skipped; events are
// still reached.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <thread>

#include "tests/fake_cuda/fake_state.h"

namespace ridge::fake_cuda {

// run(skipped)
using Work = std::function<DriverCode(bool skipped)>;

// Work that streams captured, in the order in which they were told.
struct GraphNode {
  Work run;
  std::vector<size_t> behind;  // nodes that end before it begins
};
using Graph = std::vector<GraphNode>;
class Stream;
struct Capture {
  Graph graph;
  const Stream* origin;    // that began it
  std::thread::id thread;  // that must end it; none: any may
  bool valid = true;       // nothing was asked that a capture forbids
};
// One order in which it may run: of what may run next, any.
std::vector<size_t> DrawOrder(const Graph& graph, std::mt19937& draw);

class Stream {
 public:
  // Of the calling thread's current GPU.
  Stream(uint32_t seed, bool lazy);
  ~Stream();  // after its work is done

  // While capturing, into the graph.
  void Push(Work run);
  // A stream that waits for an event of a capturing one joins it, until the graph is taken.
  void BeginCapture(bool any_thread);
  void JoinCapture(const std::shared_ptr<Capture>& capture, const std::vector<size_t>& behind);
  const std::shared_ptr<Capture>& capture() const { return capture_; }
  // The nodes behind which the next one runs.
  const std::vector<size_t>& behind() const { return behind_; }
  void SetBehind(std::vector<size_t> nodes) { behind_ = std::move(nodes); }
  // Takes the graph.  The capture goes on after kCaptureUnmatched and kCaptureWrongThread, and is
  // no longer valid; any other error ends it. REQUIRES: it captures.
  DriverCode EndCapture(Graph& graph);
  void Synchronize();
  // Somebody waits for what was pushed until now.
  void Need();
  const Gpu* gpu() const { return gpu_; }

 private:
  void Loop();
  void Delay();

  std::mutex lock_;
  std::condition_variable changed_;
  std::deque<Work> waiting_;
  std::shared_ptr<Capture> capture_;
  std::vector<size_t> behind_;
  int64_t pushed_ = 0, begun_ = 0, needed_ = 0;  // pieces of work
  const Gpu* const gpu_;
  const bool lazy_;
  bool busy_ = false, stop_ = false;
  std::mt19937 draw_;
  std::thread thread_;
};

// All streams of the calling thread's current GPU.
void SynchronizeAll();

class Event {
 public:
  void Record(Stream& stream);
  // For the last record; nothing before the first.  Fails with kCaptureIsolation where a capture
  // would wait for what is outside it.
  DriverCode WaitOn(Stream& stream);
  // Fails with kInvalidHandle without a record, with kNotReady before it was reached.
  DriverCode Seconds(double* seconds) const;

 private:
  // Shared with the work that waits for it.
  struct Reached {
    std::mutex lock;
    std::condition_variable changed;
    int64_t recorded = 0, done = 0;
    double seconds = 0;
    Stream* stream = nullptr;  // of the last record
  };
  std::shared_ptr<Reached> reached_ = std::make_shared<Reached>();
  std::weak_ptr<Capture> captured_;  // by which the last record was taken
  std::vector<size_t> behind_;       // its nodes before the record
};

}  // namespace ridge::fake_cuda
