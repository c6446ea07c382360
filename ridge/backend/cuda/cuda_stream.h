// Streams and events of a GPU.  An error is kept by the context, and nothing is enqueued after it.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "ridge/backend/cuda/cuda_context.h"
#include "ridge/backend/device.h"

namespace ridge::cuda {

class CudaClock;

class CudaEvent : public Event {
 public:
  // `clock` says its time; without one it has none.
  explicit CudaEvent(CudaContext& context, CudaClock* clock = nullptr);
  ~CudaEvent() override;
  double seconds() const override;
  EventHandle handle() const { return handle_; }

 private:
  CudaContext& context_;
  CudaClock* const clock_;
  EventHandle handle_ = nullptr;
};

// A CUDA graph, ready to be launched.
class CudaRecording : public Recording {
 public:
  // Takes `graph`.
  static Result<std::unique_ptr<Recording>> Create(CudaContext& context, GraphHandle graph);
  ~CudaRecording() override;
  GraphExecHandle handle() const { return handle_; }

 private:
  explicit CudaRecording(CudaContext& context) : context_(context) {}

  CudaContext& context_;
  GraphExecHandle handle_ = nullptr;
};

class CudaStream : public Stream {
 public:
  // Of the greatest priority.
  static Result<std::unique_ptr<CudaStream>> Create(CudaContext& context, bool records = false);
  ~CudaStream() override;
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  StreamHandle handle() const { return handle_; }

  void Copy(void* to, const void* from, int64_t bytes) override;
  void Upload(void* to, const void* from, int64_t bytes) override;
  void Download(void* to, const void* from, int64_t bytes) override;
  void Clear(void* to, int64_t bytes) override;
  void Record(Event& event) override;
  void Wait(const Event& event) override;
  Status Synchronize() override;
  bool records() const override { return records_; }
  void BeginRecording() override;
  Result<std::unique_ptr<Recording>> EndRecording() override;
  void Play(Recording& recording) override;
  bool branches() const override { return records_; }
  int Mark() override;
  void RunBehind(std::span<const int> marks) override;

 private:
  CudaStream(CudaContext& context, bool records) : context_(context), records_(records) {}

  // Nodes of the graph behind which work runs.
  struct Nodes {
    std::vector<GraphNodeHandle> handles;
    std::vector<GraphEdge> edges;
  };

  CudaContext& context_;
  const bool records_;
  StreamHandle handle_ = nullptr;
  std::vector<Nodes> marks_;  // of the recording
};

// Seconds of events since it was made.  CUDA has milliseconds of 32 bits between two events, so an
// origin that is more than `span_s` before an event is replaced by a new one, which is after it:
// times that are read one after the other are from one origin, and differ by what CUDA resolves.
class CudaClock {
 public:
  // Origins are recorded on `stream`, which it waits for.
  CudaClock(CudaContext& context, CudaStream& stream, double span_s);
  double SecondsOf(const CudaEvent& event);

 private:
  void Reach(CudaEvent& event);  // now
  double Between(const CudaEvent& begin, const CudaEvent& end);

  CudaContext& context_;
  CudaStream& stream_;
  const double span_s_;
  std::unique_ptr<CudaEvent> origin_, next_;
  double origin_s_ = 0;  // its time
};

}  // namespace ridge::cuda
