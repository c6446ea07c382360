#include "tests/fake_cuda/fake_stream.h"

#include <chrono>

namespace ridge::fake_cuda {
namespace {

struct AllStreams {
  std::mutex lock;
  std::vector<Stream*> streams;
};
AllStreams& TheStreams() {
  static AllStreams all;
  return all;
}

// One that is gone has done its work.
void NeedStream(Stream* wanted) {
  const std::lock_guard hold(TheStreams().lock);
  for (Stream* stream : TheStreams().streams) {
    if (stream == wanted) stream->Need();
  }
}

// Whether each node is one of `last` or ends before one of them begins.
std::vector<bool> Before(const Graph& graph, const std::vector<size_t>& last) {
  std::vector<bool> before(graph.size());
  for (const size_t node : last) before[node] = true;
  for (size_t node = graph.size(); node-- > 0;) {
    if (!before[node]) continue;
    for (const size_t earlier : graph[node].behind) before[earlier] = true;
  }
  return before;
}

}  // namespace

void SynchronizeAll() {
  std::vector<Stream*> streams;
  {
    const std::lock_guard hold(TheStreams().lock);
    for (Stream* stream : TheStreams().streams) {
      if (stream->gpu() == CurrentGpu()) streams.push_back(stream);
    }
  }
  for (Stream* stream : streams) stream->Synchronize();
}

Stream::Stream(uint32_t seed, bool lazy)
    : gpu_(CurrentGpu()), lazy_(lazy), draw_(seed), thread_([this] { Loop(); }) {
  const std::lock_guard hold(TheStreams().lock);
  TheStreams().streams.push_back(this);
}

Stream::~Stream() {
  {
    const std::lock_guard hold(TheStreams().lock);
    std::erase(TheStreams().streams, this);
  }
  {
    const std::lock_guard hold(lock_);
    stop_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void Stream::BeginCapture(bool any_thread) {
  const std::thread::id thread = any_thread ? std::thread::id() : std::this_thread::get_id();
  capture_ = std::make_shared<Capture>(Capture{{}, this, thread});
  behind_.clear();
}

DriverCode Stream::EndCapture(Graph& graph) {
  const std::lock_guard hold(TheStreams().lock);
  const std::shared_ptr<Capture> capture = capture_;
  const bool owned =
      capture->thread == std::thread::id() || capture->thread == std::this_thread::get_id();
  if (capture->origin != this || !owned) {
    capture->valid = false;
    return owned ? DriverCode::kCaptureUnmatched : DriverCode::kCaptureWrongThread;
  }
  const std::vector<bool> joined = Before(capture->graph, behind_);
  DriverCode code = capture->valid ? DriverCode::kSuccess : DriverCode::kCaptureInvalidated;
  for (Stream* stream : TheStreams().streams) {
    if (stream->capture_ != capture) continue;
    for (const size_t last : stream->behind_) {
      if (capture->valid && !joined[last]) code = DriverCode::kCaptureUnjoined;
    }
    stream->capture_ = nullptr;
  }
  graph = std::move(capture->graph);
  return code;
}

void Stream::Push(Work run) {
  if (const DriverCode late = TheState().TakeLate(); late != DriverCode::kSuccess)
    run = [late](bool skipped) { return skipped ? DriverCode::kSuccess : late; };
  if (capture_ != nullptr) {
    capture_->graph.push_back({std::move(run), behind_});
    behind_ = {capture_->graph.size() - 1};
    return;
  }
  const std::lock_guard hold(lock_);
  waiting_.push_back(std::move(run));
  ++pushed_;
  changed_.notify_all();
}

void Stream::JoinCapture(const std::shared_ptr<Capture>& capture,
                         const std::vector<size_t>& behind) {
  if (capture_ != capture) behind_.clear();
  capture_ = capture;
  behind_.insert(behind_.end(), behind.begin(), behind.end());
}

std::vector<size_t> DrawOrder(const Graph& graph, std::mt19937& draw) {
  std::vector<size_t> order, ready, waits(graph.size());
  std::vector<std::vector<size_t>> next(graph.size());
  for (size_t n = 0; n < graph.size(); ++n) {
    waits[n] = graph[n].behind.size();
    for (const size_t before : graph[n].behind) next[before].push_back(n);
    if (waits[n] == 0) ready.push_back(n);
  }
  while (!ready.empty()) {
    std::swap(ready[draw() % ready.size()], ready.back());
    const size_t n = ready.back();
    ready.pop_back();
    order.push_back(n);
    for (const size_t later : next[n]) {
      if (--waits[later] == 0) ready.push_back(later);
    }
  }
  return order;
}

void Stream::Need() {
  const std::lock_guard hold(lock_);
  needed_ = pushed_;
  changed_.notify_all();
}

void Stream::Synchronize() {
  Need();
  std::unique_lock hold(lock_);
  changed_.wait(hold, [this] { return waiting_.empty() && !busy_; });
}

void Stream::Loop() {
  std::unique_lock hold(lock_);
  while (true) {
    busy_ = false;
    changed_.notify_all();
    changed_.wait(hold,
                  [this] { return stop_ || (!waiting_.empty() && (!lazy_ || begun_ < needed_)); });
    if (waiting_.empty()) return;
    const Work run = std::move(waiting_.front());
    waiting_.pop_front();
    ++begun_;
    busy_ = true;
    hold.unlock();
    Delay();
    const bool skipped = TheState().stays(gpu_) != DriverCode::kSuccess;
    if (const DriverCode code = run(skipped); code != DriverCode::kSuccess)
      TheState().Stay(code, gpu_);
    hold.lock();
  }
}

void Stream::Delay() {
  const uint32_t most = TheState().settings().most_delay_us;
  if (most > 0) std::this_thread::sleep_for(std::chrono::microseconds(draw_() % (most + 1)));
}

void Event::Record(Stream& stream) {
  captured_ = stream.capture();
  behind_ = stream.behind();
  if (stream.capture() != nullptr) return;
  int64_t ticket = 0;
  {
    const std::lock_guard hold(reached_->lock);
    ticket = ++reached_->recorded;
    reached_->stream = &stream;
  }
  stream.Push([reached = reached_, ticket](bool) {
    const std::lock_guard hold(reached->lock);
    reached->done = ticket;
    reached->seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
    reached->changed.notify_all();
    return DriverCode::kSuccess;
  });
}

DriverCode Event::WaitOn(Stream& stream) {
  if (const std::shared_ptr<Capture> capture = captured_.lock()) {
    stream.JoinCapture(capture, behind_);
    return DriverCode::kSuccess;
  }
  int64_t ticket = 0;
  Stream* recorded_by = nullptr;
  {
    const std::lock_guard hold(reached_->lock);
    ticket = reached_->recorded;
    recorded_by = reached_->stream;
  }
  if (ticket == 0) return DriverCode::kSuccess;
  if (stream.capture() != nullptr) {
    stream.capture()->valid = false;
    return DriverCode::kCaptureIsolation;
  }
  stream.Push([reached = reached_, ticket, recorded_by](bool) {
    NeedStream(recorded_by);
    std::unique_lock hold(reached->lock);
    reached->changed.wait(hold, [&] { return reached->done >= ticket; });
    return DriverCode::kSuccess;
  });
  return DriverCode::kSuccess;
}

DriverCode Event::Seconds(double* seconds) const {
  const std::lock_guard hold(reached_->lock);
  if (reached_->recorded == 0) return DriverCode::kInvalidHandle;
  if (reached_->done < reached_->recorded) return DriverCode::kNotReady;
  *seconds = reached_->seconds;
  return DriverCode::kSuccess;
}

}  // namespace ridge::fake_cuda
