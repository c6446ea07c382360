// CudaDevice: a GPU of NVIDIA by its driver alone: memory, streams and events.
//
// The host cannot follow an address of its memory.  Any thread may enqueue, one at a time.
#pragma once
#include <memory>
#include <vector>

#include "ridge/backend/cuda/cuda_context.h"
#include "ridge/backend/cuda/cuda_stream.h"
#include "ridge/backend/device.h"

namespace ridge::cuda {

struct CudaOptions {
  int compute_streams = 2;
  double clock_span_s = 30;  // of CudaClock: then a time is right to 4 us
  bool records = true;       // the main stream, by CUDA graphs
};

class CudaDevice : public Device {
 public:
  // `ordinal`: among the GPUs that CUDA_VISIBLE_DEVICES leaves.  Takes the GPU's primary context.
  // Fails with kDevice when there is no such GPU, and with the driver's errors.
  static Result<std::unique_ptr<CudaDevice>> Open(const Driver& driver, int ordinal,
                                                  const CudaOptions& options = {});
  ~CudaDevice() override;

  // Addresses of 256 bytes, which restrict no library; pages of the driver's granularity, 2 MiB.
  MemorySpace memory_space() const override;
  Result<std::unique_ptr<Memory>> Allocate(int64_t bytes) override;
  Result<std::unique_ptr<Memory>> AllocateWithHost(int64_t bytes, const HostPart& host) override;
  Result<std::unique_ptr<Memory>> AllocateStaging(int64_t bytes) override;
  // By the driver's count, with the contexts of all processes.
  std::optional<int64_t> used_bytes() override;
  int streams() const override { return static_cast<int>(streams_.size()); }
  Stream& stream(int index) override { return *streams_[static_cast<size_t>(index)]; }
  std::unique_ptr<Event> MakeEvent() override;
  void ForEachPart(int parts, PartFunction f) override;

  const GpuFacts& gpu() const { return gpu_; }
  CudaContext& context() { return *context_; }
  // What the driver says is free.
  Result<int64_t> FreeBytes();

 private:
  CudaDevice(GpuFacts gpu, std::unique_ptr<CudaContext> context);
  Status MakeStreams(const CudaOptions& options);
  Status FindPageBytes();

  const GpuFacts gpu_;
  const std::unique_ptr<CudaContext> context_;  // outlives what follows
  int64_t page_bytes_ = 0;
  std::vector<std::unique_ptr<CudaStream>> streams_;
  std::unique_ptr<CudaClock> clock_;
};

}  // namespace ridge::cuda
