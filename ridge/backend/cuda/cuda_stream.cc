#include "ridge/backend/cuda/cuda_stream.h"

#include <algorithm>
#include <utility>

namespace ridge::cuda {
namespace {

DevicePtr Address(const void* at) { return reinterpret_cast<DevicePtr>(at); }

}  // namespace

CudaEvent::CudaEvent(CudaContext& context, CudaClock* clock) : context_(context), clock_(clock) {
  if (context_.Ready()) context_.Keep(RIDGE_CUDA(context_, EventCreate, &handle_, kEventDefault));
}

CudaEvent::~CudaEvent() {
  (void)context_.Enter();
  if (handle_ != nullptr) context_.driver().EventDestroy(handle_);
}

double CudaEvent::seconds() const { return clock_ == nullptr ? 0 : clock_->SecondsOf(*this); }

Result<std::unique_ptr<CudaStream>> CudaStream::Create(CudaContext& context, bool records) {
  if (!context.Ready()) return context.error();
  int least = 0, greatest = 0;
  RIDGE_RETURN_IF_ERROR(RIDGE_CUDA(context, CtxGetStreamPriorityRange, &least, &greatest));
  std::unique_ptr<CudaStream> stream(new CudaStream(context, records));
  RIDGE_RETURN_IF_ERROR(RIDGE_CUDA(context, StreamCreateWithPriority, &stream->handle_,
                                   kStreamNonBlocking, greatest));
  return stream;
}

CudaStream::~CudaStream() {
  (void)context_.Enter();
  if (handle_ != nullptr) context_.driver().StreamDestroy(handle_);
}

void CudaStream::Copy(void* to, const void* from, int64_t bytes) {
  if (bytes == 0 || !context_.Ready()) return;
  context_.Keep(RIDGE_CUDA(context_, MemcpyAsync, Address(to), Address(from),
                           static_cast<size_t>(bytes), handle_));
}

void CudaStream::Upload(void* to, const void* from, int64_t bytes) {
  if (bytes == 0 || !context_.Ready()) return;
  context_.Keep(RIDGE_CUDA(context_, MemcpyHtoDAsync, Address(to), from, static_cast<size_t>(bytes),
                           handle_));
}

void CudaStream::Download(void* to, const void* from, int64_t bytes) {
  if (bytes == 0 || !context_.Ready()) return;
  context_.Keep(RIDGE_CUDA(context_, MemcpyDtoHAsync, to, Address(from), static_cast<size_t>(bytes),
                           handle_));
}

void CudaStream::Clear(void* to, int64_t bytes) {
  if (bytes == 0 || !context_.Ready()) return;
  context_.Keep(
      RIDGE_CUDA(context_, MemsetD8Async, Address(to), 0, static_cast<size_t>(bytes), handle_));
}

void CudaStream::Record(Event& event) {
  if (!context_.Ready()) return;
  context_.Keep(
      RIDGE_CUDA(context_, EventRecord, static_cast<CudaEvent&>(event).handle(), handle_));
}

void CudaStream::Wait(const Event& event) {
  if (!context_.Ready()) return;
  const auto& recorded = static_cast<const CudaEvent&>(event);
  context_.Keep(RIDGE_CUDA(context_, StreamWaitEvent, handle_, recorded.handle(), 0));
}

CudaClock::CudaClock(CudaContext& context, CudaStream& stream, double span_s)
    : context_(context),
      stream_(stream),
      span_s_(span_s),
      origin_(std::make_unique<CudaEvent>(context)),
      next_(std::make_unique<CudaEvent>(context)) {
  Reach(*origin_);
}

double CudaClock::SecondsOf(const CudaEvent& event) {
  double since_s = Between(*origin_, event);
  if (since_s > span_s_) {
    Reach(*next_);
    origin_s_ += Between(*origin_, *next_);
    std::swap(origin_, next_);
    since_s = Between(*origin_, event);
  }
  return origin_s_ + since_s;
}

void CudaClock::Reach(CudaEvent& event) {
  stream_.Record(event);
  (void)stream_.Synchronize();  // an error stays
}

double CudaClock::Between(const CudaEvent& begin, const CudaEvent& end) {
  float milliseconds = 0;
  if (context_.Ready()) {
    context_.Keep(
        RIDGE_CUDA(context_, EventElapsedTime, &milliseconds, begin.handle(), end.handle()));
  }
  return static_cast<double>(milliseconds) * 1e-3;
}

Result<std::unique_ptr<Recording>> CudaRecording::Create(CudaContext& context, GraphHandle graph) {
  std::unique_ptr<CudaRecording> recording(new CudaRecording(context));
  const Status made = RIDGE_CUDA(context, GraphInstantiate, &recording->handle_, graph, 0);
  context.driver().GraphDestroy(graph);
  RIDGE_RETURN_IF_ERROR(made);
  return std::unique_ptr<Recording>(std::move(recording));
}

CudaRecording::~CudaRecording() {
  (void)context_.Enter();
  if (handle_ != nullptr) context_.driver().GraphExecDestroy(handle_);
}

void CudaStream::BeginRecording() {
  marks_.clear();
  if (!context_.Ready()) return;
  context_.Keep(RIDGE_CUDA(context_, StreamBeginCapture, handle_, kCaptureRelaxed));
}

// Ends after an error too: the stream is as it was before.
Result<std::unique_ptr<Recording>> CudaStream::EndRecording() {
  context_.Keep(context_.Enter());
  GraphHandle graph = nullptr;
  context_.Keep(RIDGE_CUDA(context_, StreamEndCapture, handle_, &graph));
  if (!context_.error().ok()) {
    if (graph != nullptr) context_.driver().GraphDestroy(graph);
    return context_.error();
  }
  return CudaRecording::Create(context_, graph);
}

int CudaStream::Mark() {
  Nodes last;
  int status = 0;
  uint64_t id = 0;
  GraphHandle graph = nullptr;
  const GraphNodeHandle* nodes = nullptr;
  const GraphEdge* edges = nullptr;
  size_t count = 0;
  if (context_.Ready()) {
    context_.Keep(RIDGE_CUDA(context_, StreamGetCaptureInfo, handle_, &status, &id, &graph, &nodes,
                             &edges, &count));
  }
  if (!context_.error().ok()) count = 0;
  last.handles.assign(nodes, nodes + count);
  last.edges.resize(count, GraphEdge{});
  if (edges != nullptr) std::copy(edges, edges + count, last.edges.begin());
  marks_.push_back(std::move(last));
  return static_cast<int>(marks_.size()) - 1;
}

void CudaStream::RunBehind(std::span<const int> marks) {
  Nodes nodes;
  for (const int mark : marks) {
    const Nodes& one = marks_[static_cast<size_t>(mark)];
    for (size_t i = 0; i < one.handles.size(); ++i) {
      if (std::find(nodes.handles.begin(), nodes.handles.end(), one.handles[i]) !=
          nodes.handles.end())
        continue;
      nodes.handles.push_back(one.handles[i]);
      nodes.edges.push_back(one.edges[i]);
    }
  }
  if (!context_.Ready()) return;
  context_.Keep(RIDGE_CUDA(context_, StreamUpdateCaptureDependencies, handle_, nodes.handles.data(),
                           nodes.edges.data(), nodes.handles.size(), kSetCaptureDependencies));
}

void CudaStream::Play(Recording& recording) {
  if (!context_.Ready()) return;
  context_.Keep(
      RIDGE_CUDA(context_, GraphLaunch, static_cast<CudaRecording&>(recording).handle(), handle_));
}

// Waits after an error too: what was enqueued before it still uses memory of the host.
Status CudaStream::Synchronize() {
  context_.Keep(context_.Enter());
  context_.Keep(RIDGE_CUDA(context_, StreamSynchronize, handle_));
  return context_.error();
}

}  // namespace ridge::cuda
