// Device: memory, streams and events of the hardware that runs kernels.
//
// Work is enqueued on a stream and runs in its order.  Only events order work of two streams, and
// only a synchronization orders it before what the host does next: Copy() and the others may return
// before the work begins.  On the CPU a stream is the calling thread, and all work is done at once.
//
// An error of enqueued work stays: what is enqueued later does not run, and every Synchronize()
// returns it.  Not thread-safe, except for ForEachPart's calls, each on its own stream.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "ridge/core/status.h"
#include "ridge/lower/kernel_query.h"

namespace ridge {

// A point in a stream: everything that was enqueued before it.
class Event {
 public:
  virtual ~Event() = default;
  // When it was reached, by the device's clock.  REQUIRES: its stream has been synchronized since.
  virtual double seconds() const = 0;
};

// From one event to a later one of the same device.  The later one is read first: the device's
// clock may move its origin for it, and then both times are from one origin.
inline double SecondsBetween(const Event& begin, const Event& end) {
  const double end_s = end.seconds();
  return end_s - begin.seconds();
}

// One range of a device's addresses.
class Memory {
 public:
  virtual ~Memory() = default;
  std::byte* data() const { return data_; }  // the host follows it only if host_visible()
  int64_t bytes() const { return bytes_; }   // whole pages
  // The first of them, in the host's memory beside a device with one of its own.
  virtual int64_t host_bytes() const { return 0; }
  virtual bool host_visible() const = 0;
  virtual int64_t resident_bytes() const = 0;  // that occupy the device's memory now
  // Makes all of it resident now.  REQUIRES: no content is needed; it may be lost.
  virtual void MakeResident() = 0;

 protected:
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

// Work of a stream, kept: Stream::Play() enqueues all of it at once, with the same addresses.
class Recording {
 public:
  virtual ~Recording() = default;
};

class Stream {
 public:
  virtual ~Stream() = default;
  // Within the device; the ranges do not overlap.
  virtual void Copy(void* to, const void* from, int64_t bytes) = 0;
  // From and to host memory, which must not change, or be read, before the next Synchronize().
  virtual void Upload(void* to, const void* from, int64_t bytes) = 0;
  virtual void Download(void* to, const void* from, int64_t bytes) = 0;
  virtual void Clear(void* to, int64_t bytes) = 0;  // zeros
  virtual void Record(Event& event) = 0;
  // What is enqueued here next runs after `event`, as it was recorded last.
  virtual void Wait(const Event& event) = 0;
  // Waits for all work.  Fails with the device's first error.
  virtual Status Synchronize() = 0;

  // Whether it records: what it is told between BeginRecording() and EndRecording() is kept instead
  // of run.  REQUIRES: meanwhile nobody synchronizes, and nothing goes from or to the host.
  virtual bool records() const { return false; }
  virtual void BeginRecording() {}
  virtual Result<std::unique_ptr<Recording>> EndRecording() { return std::unique_ptr<Recording>(); }
  // REQUIRES: this stream recorded it.
  virtual void Play(Recording&) {}
  // Whether work of a recording may run at once: Mark() names what was told last, until
  // EndRecording(); what is told after RunBehind(marks) runs behind the work of these marks, and
  // behind nothing else that was told.
  virtual bool branches() const { return false; }
  virtual int Mark() { return 0; }
  virtual void RunBehind(std::span<const int> marks) { (void)marks; }
};

// A reference to f(int part), without an allocation.
class PartFunction {
 public:
  template <typename F>
  PartFunction(const F& f)  // NOLINT: converts
      : f_(&f), call_([](const void* f, int part) { (*static_cast<const F*>(f))(part); }) {}
  void operator()(int part) const { call_(f_, part); }

 private:
  const void* f_;
  void (*call_)(const void* f, int part);
};

// What of a device's memory is the host's.
struct HostPart {
  int64_t bytes = 0;      // the first ones, in whole pages
  bool followed = false;  // the host follows their addresses, too
};

class Device {
 public:
  virtual ~Device() = default;
  virtual MemorySpace memory_space() const = 0;
  // Its contents are undefined.  Fails with kOutOfMemory, or with kDeviceMemory where the device
  // has a memory of its own.
  virtual Result<std::unique_ptr<Memory>> Allocate(int64_t bytes) = 0;
  // The same, with a part in the host's memory, which kernels reach over the link.  REQUIRES: bytes
  // are whole pages.
  virtual Result<std::unique_ptr<Memory>> AllocateWithHost(int64_t bytes, const HostPart& host) {
    (void)bytes, (void)host;
    return Status(ErrorCode::kUnsupported, "the device has no memory beside its host's");
  }
  // Host memory that streams copy from and to best.
  virtual Result<std::unique_ptr<Memory>> AllocateStaging(int64_t bytes) = 0;
  // Bytes of a memory of its own that are in use now, by this process and others; none where memory
  // is the host's.
  virtual std::optional<int64_t> used_bytes() { return std::nullopt; }
  virtual int streams() const = 0;
  virtual Stream& stream(int index) = 0;  // 0: the main one; they live as long as the device
  virtual std::unique_ptr<Event> MakeEvent() = 0;
  // Calls f(part) for part in [0, parts) on host threads; where kernels run on the host, on theirs.
  // f must not throw.
  virtual void ForEachPart(int parts, PartFunction f) = 0;
};

}  // namespace ridge
