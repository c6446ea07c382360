#include "tests/fake_device/fake_device.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <random>
#include <thread>
#include <utility>

#include "ridge/backend/cpu/host_memory.h"
#include "ridge/core/process.h"
#include "ridge/core/rounding.h"

namespace ridge::fake {

constexpr int kStreams = 2;

// --- memory --------------------------------------------------------------------------------------

// One memfd, mapped twice: without access where the host sees it, and for the workers.
class FakeMemory : public Memory {
 public:
  FakeMemory(FakeDevice& device, int64_t bytes, const HostPart& host)
      : device_(device), host_bytes_(host.bytes) {
    const auto size = static_cast<size_t>(bytes);
    const int file = ::memfd_create("fake_device", 0);
    RIDGE_CHECK(file >= 0 && ::ftruncate(file, bytes) == 0, "memfd");
    void* address = ::mmap(nullptr, size, PROT_NONE, MAP_SHARED, file, 0);
    void* inside = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    RIDGE_CHECK(address != MAP_FAILED && inside != MAP_FAILED, "mmap");
    data_ = static_cast<std::byte*>(address);
    inside_ = static_cast<std::byte*>(inside);
    bytes_ = bytes;
    std::memset(inside_, 0xFF, size);
    const auto shown = static_cast<size_t>(host.followed ? host.bytes : 0);
    RIDGE_CHECK(shown == 0 || ::mprotect(data_, shown, PROT_READ | PROT_WRITE) == 0, "mprotect");
    const std::lock_guard lock(device_.lock_);
    device_.memories_.push_back(this);
    device_.used_bytes_ += bytes_;
  }
  ~FakeMemory() override {
    for (int i = 0; i < device_.streams(); ++i) (void)device_.stream(i).Synchronize();
    const std::lock_guard lock(device_.lock_);
    std::erase(device_.memories_, this);
    device_.used_bytes_ -= bytes_;
    device_.order_.Forget(reinterpret_cast<uintptr_t>(data_), bytes_);
    ::munmap(data_, static_cast<size_t>(bytes_));
    ::munmap(inside_, static_cast<size_t>(bytes_));
  }

  bool host_visible() const override { return false; }
  int64_t host_bytes() const override { return host_bytes_; }
  int64_t resident_bytes() const override { return bytes_ - host_bytes_; }
  void MakeResident() override {}
  std::byte* inside() const { return inside_; }

 private:
  FakeDevice& device_;
  const int64_t host_bytes_;
  std::byte* inside_;
};

Result<std::unique_ptr<Memory>> FakeDevice::AllocateWithHost(int64_t bytes, const HostPart& host) {
  const int64_t whole =
      std::max(RoundUp(bytes, options_.space.page_bytes), options_.space.page_bytes);
  if (used_bytes_ + whole > options_.memory_bytes) {
    return Status(ErrorCode::kOutOfMemory,
                  fmt::format("fake device: {} bytes are needed, {} of {} are free", whole,
                              options_.memory_bytes - used_bytes_, options_.memory_bytes));
  }
  return std::unique_ptr<Memory>(std::make_unique<FakeMemory>(*this, whole, host));
}

Result<std::unique_ptr<Memory>> FakeDevice::AllocateStaging(int64_t bytes) {
  return cpu::HostMemory::Map(bytes, /*threads=*/1);
}

void* FakeDevice::Find(const void* address) const {
  if (address == nullptr) return nullptr;
  const auto* at = static_cast<const std::byte*>(address);
  const std::lock_guard lock(lock_);
  for (const Memory* memory : memories_) {
    if (at >= memory->data() && at < memory->data() + memory->bytes())
      return static_cast<const FakeMemory*>(memory)->inside() + (at - memory->data());
  }
  throw Bug(fmt::format("{} is no address of the fake device", address));
}

// --- events --------------------------------------------------------------------------------------

namespace {

class FakeEvent : public Event {
 public:
  // Shared with the work that waits for it.
  struct State {
    std::mutex lock;
    std::condition_variable changed;
    int64_t recorded = 0, done = 0;
    double seconds = 0;
  };

  double seconds() const override {
    const std::lock_guard lock(state->lock);
    return state->seconds;
  }

  std::shared_ptr<State> state = std::make_shared<State>();
  Clock clock;  // of the last record; empty: none yet
};

}  // namespace

std::unique_ptr<Event> FakeDevice::MakeEvent() { return std::make_unique<FakeEvent>(); }

// --- streams -------------------------------------------------------------------------------------

struct FakeStream::Queue {
  struct Work {
    std::function<Status()> run;
    bool always;  // after an error too: others wait for it
  };

  Queue(FakeDevice& owner, uint64_t seed)
      : device(owner), draw(static_cast<std::mt19937::result_type>(seed)) {}

  void Push(Work work) {
    const std::lock_guard hold(lock);
    waiting.push_back(std::move(work));
    changed.notify_all();
  }

  void Loop() {
    std::unique_lock hold(lock);
    while (true) {
      busy = false;
      changed.notify_all();
      changed.wait(hold, [this] { return stop || !waiting.empty(); });
      if (waiting.empty()) return;
      const Work work = std::move(waiting.front());
      waiting.pop_front();
      busy = true;
      hold.unlock();
      Do(work);
      hold.lock();
    }
  }

  void Do(const Work& work) {
    const int most = device.options_.most_delay_us;
    const int delay_us = most == 0 ? 0 : static_cast<int>(draw() % static_cast<uint32_t>(most + 1));
    if (delay_us > 0) std::this_thread::sleep_for(std::chrono::microseconds(delay_us));
    if (device.failed_ && !work.always) return;
    try {
      if (Status status = work.run(); !status.ok()) device.Fail(std::move(status));
    } catch (const Bug& bug) {
      device.Fail(Status(ErrorCode::kInternal, bug.what()));
    }
  }

  FakeDevice& device;
  std::mt19937 draw;
  std::mutex lock;
  std::condition_variable changed;
  std::deque<Work> waiting;
  bool busy = false, stop = false;
  std::thread thread;
};

FakeStream::FakeStream(FakeDevice& device, int index)
    : device_(device),
      index_(index),
      queue_(std::make_unique<Queue>(
          device, device.options_.seed * kStreams + static_cast<uint64_t>(index))) {
  queue_->thread = std::thread([this] { queue_->Loop(); });
}

FakeStream::~FakeStream() {
  {
    const std::lock_guard hold(queue_->lock);
    queue_->stop = true;
    queue_->changed.notify_all();
  }
  queue_->thread.join();
}

void FakeStream::Enqueue(const std::string& what, const std::vector<Touched>& touched,
                         std::function<Status()> run) {
  std::string wrong;
  {
    const std::lock_guard hold(device_.lock_);
    device_.order_.Begin(index_, what);
    for (const Touched& t : touched) {
      if (t.begin == nullptr || !wrong.empty()) continue;
      wrong = device_.order_.Touch(index_, reinterpret_cast<uintptr_t>(t.begin), t.bytes, t.writes);
    }
  }
  if (!wrong.empty()) device_.Fail(Status(ErrorCode::kDevice, "fake device: " + wrong));
  queue_->Push({std::move(run), /*always=*/false});
}

void FakeStream::Launch(const std::string& what, const std::vector<Touched>& touched,
                        std::function<Status()> run) {
  if (device_.kernels_++ == device_.options_.fail_kernel) {
    run = [what] {
      return Status(ErrorCode::kDevice, "fake device: '" + what + "' failed as it was told to");
    };
  }
  Enqueue(what, touched, std::move(run));
}

void FakeStream::Copy(void* to, const void* from, int64_t bytes) {
  if (bytes == 0) return;
  Enqueue("copy", {{from, bytes, false}, {to, bytes, true}},
          [to = device_.Find(to), from = device_.Find(from), bytes] {
            std::memcpy(to, from, static_cast<size_t>(bytes));
            return Status();
          });
}

void FakeStream::Upload(void* to, const void* from, int64_t bytes) {
  if (bytes == 0) return;
  Enqueue("upload", {{to, bytes, true}}, [to = device_.Find(to), from, bytes] {
    std::memcpy(to, from, static_cast<size_t>(bytes));
    return Status();
  });
}

void FakeStream::Download(void* to, const void* from, int64_t bytes) {
  if (bytes == 0) return;
  Enqueue("download", {{from, bytes, false}}, [to, from = device_.Find(from), bytes] {
    std::memcpy(to, from, static_cast<size_t>(bytes));
    return Status();
  });
}

void FakeStream::Clear(void* to, int64_t bytes) {
  if (bytes == 0) return;
  Enqueue("clear", {{to, bytes, true}}, [to = device_.Find(to), bytes] {
    std::memset(to, 0, static_cast<size_t>(bytes));
    return Status();
  });
}

void FakeStream::Record(Event& event) {
  auto& fake = static_cast<FakeEvent&>(event);
  {
    const std::lock_guard hold(device_.lock_);
    fake.clock = device_.order_.Record(index_);
  }
  int64_t ticket = 0;
  {
    const std::lock_guard hold(fake.state->lock);
    ticket = ++fake.state->recorded;
  }
  const auto reach = [state = fake.state, ticket] {
    const std::lock_guard hold(state->lock);
    state->done = ticket;
    state->seconds = MonotonicSeconds();
    state->changed.notify_all();
    return Status();
  };
  queue_->Push({reach, /*always=*/true});
}

void FakeStream::Wait(const Event& event) {
  if (device_.waits_++ == device_.options_.drop_wait) return;
  const auto& fake = static_cast<const FakeEvent&>(event);
  if (fake.clock.empty()) return;
  {
    const std::lock_guard hold(device_.lock_);
    device_.order_.Wait(index_, fake.clock);
  }
  int64_t ticket = 0;
  {
    const std::lock_guard hold(fake.state->lock);
    ticket = fake.state->recorded;
  }
  const auto wait = [state = fake.state, ticket] {
    std::unique_lock hold(state->lock);
    state->changed.wait(hold, [&] { return state->done >= ticket; });
    return Status();
  };
  queue_->Push({wait, /*always=*/true});
}

Status FakeStream::Synchronize() {
  {
    std::unique_lock hold(queue_->lock);
    queue_->changed.wait(hold, [this] { return queue_->waiting.empty() && !queue_->busy; });
  }
  const std::lock_guard hold(device_.lock_);
  device_.order_.Synchronize(index_);
  return device_.error_;
}

// --- the device ----------------------------------------------------------------------------------

FakeDevice::FakeDevice(const FakeOptions& options) : options_(options), order_(kStreams) {
  for (int i = 0; i < kStreams; ++i) streams_.push_back(std::make_unique<FakeStream>(*this, i));
}

FakeDevice::~FakeDevice() { streams_.clear(); }

void FakeDevice::ForEachPart(int parts, PartFunction f) {
  for (int part = 0; part < parts; ++part) f(part);
}

void FakeDevice::Fail(Status error) {
  const std::lock_guard hold(lock_);
  if (error_.ok()) error_ = std::move(error);
  failed_ = true;
}

std::unique_ptr<Backend> MakeFakeBackend(Backend& inner, FakeDevice& device) {
  return MakeLaunchedBackend(inner, device, [&device](Stream& stream, const HostLaunch& launch) {
    static_cast<FakeStream&>(stream).Launch(
        launch.what, launch.touched,
        RunOnHostAddresses(launch, [&](const void* address) { return device.Find(address); }));
    return Status();
  });
}

}  // namespace ridge::fake
