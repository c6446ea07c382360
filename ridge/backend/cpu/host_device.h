// HostDevice: the process itself.  Its one stream is the calling thread: work is done when the call
// that enqueues it returns, events are reached at once, and the host uses device memory in place.
#pragma once
#include <memory>

#include "ridge/backend/backend.h"

namespace ridge::cpu {

class HostStream : public Stream {
 public:
  void Copy(void* to, const void* from, int64_t bytes) override;
  void Upload(void* to, const void* from, int64_t bytes) override { Copy(to, from, bytes); }
  void Download(void* to, const void* from, int64_t bytes) override { Copy(to, from, bytes); }
  void Clear(void* to, int64_t bytes) override;
  void Record(Event& event) override;
  void Wait(const Event&) override {}
  Status Synchronize() override { return Status(); }
};

// Runs a kernel of the host now.
Status RunOnHost(Kernel& kernel, const KernelBuffers& buffers);

class HostDevice : public Device {
 public:
  // `threads`: of the team (parallel.h).
  explicit HostDevice(int threads) : threads_(threads) {}

  MemorySpace memory_space() const override { return {}; }
  Result<std::unique_ptr<Memory>> Allocate(int64_t bytes) override;
  Result<std::unique_ptr<Memory>> AllocateStaging(int64_t bytes) override {
    return Allocate(bytes);
  }
  int streams() const override { return 1; }
  Stream& stream(int) override { return stream_; }
  std::unique_ptr<Event> MakeEvent() override;
  void ForEachPart(int parts, PartFunction f) override;

 private:
  const int threads_;
  HostStream stream_;
};

}  // namespace ridge::cpu
