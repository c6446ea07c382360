// FakeDevice: a device that is as far from the CPU as a device may be.
//
// The host that follows an address of its memory dies of SIGSEGV: the addresses are reserved pages
// without access, and only workers know where the bytes are.  Memory starts as 0xFF, which is NaN.
// A stream is a thread with a queue and draws a delay before each piece of work.  What no event
// orders is an error of the device (order.h), whether the delays let it go wrong or not.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ridge/backend/backend.h"
#include "tests/fake_device/launched_backend.h"
#include "tests/fake_device/order.h"

namespace ridge::fake {

struct FakeOptions {
  uint64_t seed = 1;
  int most_delay_us = 30;
  int64_t memory_bytes = int64_t{1} << 32;
  int64_t fail_kernel = -1;  // this one fails, counted from 0
  int64_t drop_wait = -1;    // this Wait() does nothing, counted from 0
  MemorySpace space = {
      .alignment_bytes = 256, .page_bytes = 1 << 16, .shared = true, .host_visible = false};
};

class FakeDevice;

class FakeStream : public Stream {
 public:
  FakeStream(FakeDevice& device, int index);
  ~FakeStream() override;

  void Copy(void* to, const void* from, int64_t bytes) override;
  void Upload(void* to, const void* from, int64_t bytes) override;
  void Download(void* to, const void* from, int64_t bytes) override;
  void Clear(void* to, int64_t bytes) override;
  void Record(Event& event) override;
  void Wait(const Event& event) override;
  Status Synchronize() override;

  // A kernel.  `touched` are device addresses; run() gets none.
  void Launch(const std::string& what, const std::vector<Touched>& touched,
              std::function<Status()> run);

 private:
  struct Queue;
  void Enqueue(const std::string& what, const std::vector<Touched>& touched,
               std::function<Status()> run);

  FakeDevice& device_;
  const int index_;
  std::unique_ptr<Queue> queue_;
};

class FakeDevice : public Device {
 public:
  explicit FakeDevice(const FakeOptions& options);
  ~FakeDevice() override;

  MemorySpace memory_space() const override { return options_.space; }
  Result<std::unique_ptr<Memory>> Allocate(int64_t bytes) override {
    return AllocateWithHost(bytes, {});
  }
  Result<std::unique_ptr<Memory>> AllocateWithHost(int64_t bytes, const HostPart& host) override;
  Result<std::unique_ptr<Memory>> AllocateStaging(int64_t bytes) override;
  int streams() const override { return static_cast<int>(streams_.size()); }
  Stream& stream(int index) override { return *streams_[static_cast<size_t>(index)]; }
  std::unique_ptr<Event> MakeEvent() override;
  void ForEachPart(int parts, PartFunction f) override;

  // Where workers find the bytes of a device address; nullptr stays.
  // REQUIRES: it lies in memory of this device.
  void* Find(const void* address) const;
  int64_t kernels() const { return kernels_; }  // enqueued so far
  int64_t waits() const { return waits_; }

 private:
  friend class FakeStream;
  friend class FakeMemory;
  void Fail(Status error);  // the first one stays

  const FakeOptions options_;
  mutable std::mutex lock_;
  Status error_;
  std::atomic<bool> failed_{false};
  Order order_;
  std::vector<Memory*> memories_;
  int64_t used_bytes_ = 0, kernels_ = 0, waits_ = 0;
  std::vector<std::unique_ptr<FakeStream>> streams_;
};

// The kernels of `inner`, which run on the host, on `device`.  Both outlive it.
std::unique_ptr<Backend> MakeFakeBackend(Backend& inner, FakeDevice& device);

}  // namespace ridge::fake
