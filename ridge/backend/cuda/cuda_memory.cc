// Each kind of memory is made empty and takes hold of one thing after the other, so that its
// destructor gives back what it has when a call between them fails.
#include "ridge/backend/cuda/cuda_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "ridge/core/rounding.h"
#include "ridge/core/units.h"

namespace ridge::cuda {
namespace {

std::byte* HostPointer(DevicePtr at) { return reinterpret_cast<std::byte*>(at); }

int64_t WholePages(int64_t bytes, int64_t page_bytes) {
  return std::max(RoundUp(bytes, page_bytes), page_bytes);
}

// With numbers on both sides where there is too little memory.
Status Refusal(CudaContext& context, int64_t bytes, const Status& status) {
  size_t free = 0, total = 0;
  if (status.code() != ErrorCode::kDeviceMemory ||
      !RIDGE_CUDA(context, MemGetInfo, &free, &total).ok() || static_cast<int64_t>(free) >= bytes)
    return status;
  return Status(
      ErrorCode::kDeviceMemory,
      fmt::format("cuda:{}: an arena of {} is needed, {} of {} are free. hint: a smaller "
                  "--batch",
                  context.ordinal(), FormatBytes(bytes), FormatBytes(static_cast<int64_t>(free)),
                  FormatBytes(static_cast<int64_t>(total))));
}

class CudaMemory : public Memory {
 public:
  explicit CudaMemory(CudaContext& context) : context_(context) {}
  bool host_visible() const override { return false; }
  int64_t resident_bytes() const override { return bytes_; }
  void MakeResident() override {}

 protected:
  // Before it is given back: work that was enqueued may still use it.
  void AwaitWork() {
    (void)context_.Enter();
    context_.driver().CtxSynchronize();
  }

  CudaContext& context_;
};

class MappedMemory : public CudaMemory {
 public:
  using CudaMemory::CudaMemory;
  ~MappedMemory() override {
    AwaitWork();
    const Driver& driver = context_.driver();
    for (const Range& range : mapped_) driver.MemUnmap(range.at, range.bytes);
    if (reserved_ != 0) driver.MemAddressFree(reserved_, Size() + 2 * guard_);
  }
  int64_t host_bytes() const override { return host_bytes_; }
  int64_t resident_bytes() const override { return bytes_ - host_bytes_; }

  Status Map(int64_t bytes, int64_t page_bytes, const HostPart& part, int node) {
    bytes_ = bytes;
    host_bytes_ = part.bytes;
    guard_ = static_cast<size_t>(page_bytes);
    RIDGE_RETURN_IF_ERROR(
        RIDGE_CUDA(context_, MemAddressReserve, &reserved_, Size() + 2 * guard_, guard_, 0, 0));
    const DevicePtr begin = reserved_ + guard_;
    data_ = HostPointer(begin);
    const auto on_host = static_cast<size_t>(part.bytes);
    const MemLocation there =
        part.followed ? MemLocation{kLocationHostNuma, node} : MemLocation{kLocationHost, 0};
    const Status host = MapRange({begin, on_host}, there);
    if (!host.ok()) {
      return Status(host.code(), fmt::format("{} of the host's memory are not to be had: {}. hint: "
                                             "neither --offload nor --place",
                                             FormatBytes(part.bytes), host.message()));
    }
    const Status here =
        MapRange({begin + on_host, Size() - on_host}, {kLocationDevice, context_.ordinal()});
    if (here.code() != ErrorCode::kDeviceMemory) return here;
    return Status(here.code(),
                  fmt::format("the GPU has no {} left: {}. hint: --fit SIZE, or end what else uses "
                              "it, which nvidia-smi lists",
                              FormatBytes(resident_bytes()), here.message()));
  }

 private:
  struct Range {
    DevicePtr at = 0;
    size_t bytes = 0;
  };

  // Memory of `location`, which the GPU reads and writes, and a node of the host where it is one's.
  Status MapRange(const Range& range, const MemLocation& location) {
    if (range.bytes == 0) return Status();
    MemAllocationProp prop = {};
    prop.type = kAllocationPinned;
    prop.location = location;
    AllocationHandle handle = 0;
    RIDGE_RETURN_IF_ERROR(RIDGE_CUDA(context_, MemCreate, &handle, range.bytes, &prop, 0));
    const Status mapped = RIDGE_CUDA(context_, MemMap, range.at, range.bytes, 0, handle, 0);
    if (mapped.ok()) mapped_.push_back(range);
    const Status released = RIDGE_CUDA(context_, MemRelease, handle);  // the mapping keeps it alive
    RIDGE_RETURN_IF_ERROR(mapped);
    RIDGE_RETURN_IF_ERROR(released);
    const MemAccessDesc access[] = {{{kLocationDevice, context_.ordinal()}, kAccessReadWrite},
                                    {location, kAccessReadWrite}};
    const size_t count = location.type == kLocationHostNuma ? 2 : 1;
    return RIDGE_CUDA(context_, MemSetAccess, range.at, range.bytes, access, count);
  }

  size_t Size() const { return static_cast<size_t>(bytes_); }

  int64_t host_bytes_ = 0;
  DevicePtr reserved_ = 0;  // guard, memory, guard
  size_t guard_ = 0;
  std::vector<Range> mapped_;
};

class AllocatedMemory : public CudaMemory {
 public:
  using CudaMemory::CudaMemory;
  ~AllocatedMemory() override {
    AwaitWork();
    if (at_ != 0) context_.driver().MemFree(at_);
  }

  Status Allocate(int64_t bytes) {
    bytes_ = bytes;
    RIDGE_RETURN_IF_ERROR(RIDGE_CUDA(context_, MemAlloc, &at_, static_cast<size_t>(bytes)));
    data_ = HostPointer(at_);
    return Status();
  }

 private:
  DevicePtr at_ = 0;
};

class HostMemory : public CudaMemory {
 public:
  using CudaMemory::CudaMemory;
  ~HostMemory() override {
    AwaitWork();
    if (at_ != nullptr) context_.driver().MemFreeHost(at_);
  }
  bool host_visible() const override { return true; }

  Status Allocate(int64_t bytes) {
    bytes_ = bytes;
    RIDGE_RETURN_IF_ERROR(RIDGE_CUDA(context_, MemHostAlloc, &at_, static_cast<size_t>(bytes), 0));
    data_ = static_cast<std::byte*>(at_);
    return Status();
  }

 private:
  void* at_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<Memory>> MapArena(CudaContext& context, int64_t bytes, int64_t page_bytes,
                                         const HostPart& host, int node) {
  if (!context.Ready()) return context.error();
  const int64_t whole = WholePages(bytes, page_bytes);
  auto memory = std::make_unique<MappedMemory>(context);
  const Status status = memory->Map(whole, page_bytes, host, node);
  if (!status.ok()) return Refusal(context, whole - host.bytes, status);
  return std::unique_ptr<Memory>(std::move(memory));
}

Result<std::unique_ptr<Memory>> AllocateArena(CudaContext& context, int64_t bytes,
                                              int64_t page_bytes) {
  if (!context.Ready()) return context.error();
  const int64_t whole = WholePages(bytes, page_bytes);
  auto memory = std::make_unique<AllocatedMemory>(context);
  const Status status = memory->Allocate(whole);
  if (!status.ok()) return Refusal(context, whole, status);
  return std::unique_ptr<Memory>(std::move(memory));
}

Result<std::unique_ptr<Memory>> AllocateHost(CudaContext& context, int64_t bytes) {
  constexpr int64_t kHostPage = 4096;
  if (!context.Ready()) return context.error();
  auto memory = std::make_unique<HostMemory>(context);
  RIDGE_RETURN_IF_ERROR(memory->Allocate(WholePages(bytes, kHostPage)));
  return std::unique_ptr<Memory>(std::move(memory));
}

}  // namespace ridge::cuda
