// Streams and events of a GPU.  An error is kept by the context, and nothing is enqueued after it.
#pragma once
#include "ridge/backend/cuda/cuda_context.h"
#include "ridge/backend/device.h"

namespace ridge::cuda {

class CudaEvent : public Event {
 public:
  explicit CudaEvent(CudaContext& context);
  ~CudaEvent() override;
  // Since `origin`, a first event of the device.
  double seconds() const override;
  EventHandle handle() const { return handle_; }
  void set_origin(const CudaEvent* origin) { origin_ = origin; }

 private:
  CudaContext& context_;
  EventHandle handle_ = nullptr;
  const CudaEvent* origin_ = nullptr;
};

enum class StreamPriority { kLeast, kGreatest };

class CudaStream : public Stream {
 public:
  static Result<std::unique_ptr<CudaStream>> Create(CudaContext& context, StreamPriority priority);
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

 private:
  explicit CudaStream(CudaContext& context) : context_(context) {}

  CudaContext& context_;
  StreamHandle handle_ = nullptr;
};

}  // namespace ridge::cuda
