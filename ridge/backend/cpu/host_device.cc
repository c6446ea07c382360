#include "ridge/backend/cpu/host_device.h"

#include <cstring>

#include "ridge/backend/cpu/host_memory.h"
#include "ridge/backend/cpu/parallel.h"
#include "ridge/core/process.h"

namespace ridge::cpu {
namespace {

class HostEvent : public Event {
 public:
  double seconds() const override { return seconds_; }
  void Reach() { seconds_ = MonotonicSeconds(); }

 private:
  double seconds_ = 0;
};

}  // namespace

void HostStream::Copy(void* to, const void* from, int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
}

void HostStream::Clear(void* to, int64_t bytes) {
  if (bytes > 0) std::memset(to, 0, static_cast<size_t>(bytes));
}

void HostStream::Record(Event& event) { static_cast<HostEvent&>(event).Reach(); }

Status RunOnHost(Kernel& kernel, const KernelBuffers& buffers) {
  HostStream stream;
  return kernel.Enqueue(stream, buffers);
}

Result<std::unique_ptr<Memory>> HostDevice::Allocate(int64_t bytes) {
  return HostMemory::Map(bytes, threads_);
}

std::unique_ptr<Event> HostDevice::MakeEvent() { return std::make_unique<HostEvent>(); }

void HostDevice::ForEachPart(int parts, PartFunction f) { cpu::ForEachPart(parts, f); }

}  // namespace ridge::cpu
