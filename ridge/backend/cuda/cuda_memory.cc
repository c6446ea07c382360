// Each kind of memory is made empty and takes hold of one thing after the other, so that its
// destructor gives back what it has when a call between them fails.
#include "ridge/backend/cuda/cuda_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>
#include <vector>

#include "ridge/core/rounding.h"
#include "ridge/core/units.h"

namespace ridge::cuda {
namespace {

std::byte* HostPointer(DevicePtr at) { return reinterpret_cast<std::byte*>(at); }

int64_t WholePages(int64_t bytes, int64_t page_bytes) {
  return std::max(RoundUp(bytes, page_bytes), page_bytes);
}

// The host's, `nearest` first.
std::vector<int> NumaNodes(int nearest) {
  constexpr std::string_view kNode = "node";
  std::set<int> others;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/devices/system/node", error)) {
    const std::string name = entry.path().filename();
    int node = -1;
    if (!name.starts_with(kNode)) continue;
    const char* const end = name.data() + name.size();
    const auto [rest, failed] = std::from_chars(name.data() + kNode.size(), end, node);
    if (failed == std::errc() && rest == end && node != nearest) others.insert(node);
  }
  std::vector<int> nodes = {nearest};
  nodes.insert(nodes.end(), others.begin(), others.end());
  return nodes;
}

// The driver's words, in a sentence that ends with another hint.
std::string WithoutHint(const Status& status) {
  return status.message().substr(0, status.message().find(". hint: "));
}

Status NoHostMemory(const HostPart& part, const Status& refusal) {
  const bool is_node = part.followed && refusal.code() != ErrorCode::kDeviceMemory;
  return Status(refusal.code(),
                fmt::format("{} of the host's memory are not to be had: {}. hint: {}{}",
                            FormatBytes(part.bytes), WithoutHint(refusal),
                            is_node ? "in a container, docker run --cap-add SYS_NICE; or " : "",
                            part.followed ? "no --place" : "no --offload"));
}

Status NotLocked(int64_t bytes, const Status& refusal) {
  if (refusal.code() != ErrorCode::kDeviceMemory) return refusal;
  return Status(
      refusal.code(),
      fmt::format("{} of the host's memory cannot be locked: {}. hint: end what else uses "
                  "it, which top lists, or raise the container's limit",
                  FormatBytes(bytes), WithoutHint(refusal)));
}

// `bytes` are the GPU's part.
Status NoArena(CudaContext& context, int64_t bytes, const Status& refusal) {
  size_t free = 0, total = 0;
  if (refusal.code() != ErrorCode::kDeviceMemory ||
      !RIDGE_CUDA(context, MemGetInfo, &free, &total).ok())
    return refusal;
  return Status(
      refusal.code(),
      fmt::format("an arena of {} is needed, {} of {} are free: {}. hint: --fit SIZE, or {}",
                  FormatBytes(bytes), FormatBytes(static_cast<int64_t>(free)),
                  FormatBytes(static_cast<int64_t>(total)), WithoutHint(refusal), kHintMemory));
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

  Status Map(int64_t bytes, int64_t page_bytes, const HostPart& part, int nearest) {
    bytes_ = bytes;
    host_bytes_ = part.bytes;
    guard_ = static_cast<size_t>(page_bytes);
    RIDGE_RETURN_IF_ERROR(
        RIDGE_CUDA(context_, MemAddressReserve, &reserved_, Size() + 2 * guard_, guard_, 0, 0));
    const DevicePtr begin = reserved_ + guard_;
    data_ = HostPointer(begin);
    const auto on_host = static_cast<size_t>(part.bytes);
    const Status host = part.followed ? MapOnSomeNode({begin, on_host}, nearest)
                                      : MapRange({begin, on_host}, {kLocationHost, 0});
    if (!host.ok()) return NoHostMemory(part, host);
    const Status here =
        MapRange({begin + on_host, Size() - on_host}, {kLocationDevice, context_.ordinal()});
    return here.ok() ? here : NoArena(context_, resident_bytes(), here);
  }

 private:
  struct Range {
    DevicePtr at = 0;
    size_t bytes = 0;
  };

  // Some nodes are refused that the machine has: those without cores, and in containers those that
  // it hides.  The first refusal is told.
  Status MapOnSomeNode(const Range& range, int nearest) {
    if (range.bytes == 0) return Status();
    Status refusal;
    for (const int node : NumaNodes(nearest)) {
      const MemLocation location = {kLocationHostNuma, node};
      const Result<AllocationHandle> handle = CreateAt(range.bytes, location);
      if (handle.ok()) return MapHandle(range, *handle, location);
      if (refusal.ok()) refusal = handle.status();
      if (!context_.Ready()) break;
    }
    return refusal;
  }

  Result<AllocationHandle> CreateAt(size_t bytes, const MemLocation& location) {
    MemAllocationProp prop = {};
    prop.type = kAllocationPinned;
    prop.location = location;
    AllocationHandle handle = 0;
    RIDGE_RETURN_IF_ERROR(RIDGE_CUDA(context_, MemCreate, &handle, bytes, &prop, 0));
    return handle;
  }

  Status MapRange(const Range& range, const MemLocation& location) {
    if (range.bytes == 0) return Status();
    RIDGE_ASSIGN_OR_RETURN(const AllocationHandle handle, CreateAt(range.bytes, location));
    return MapHandle(range, handle, location);
  }

  // Memory of `location`, which the GPU reads and writes, and a node of the host where it is one's.
  Status MapHandle(const Range& range, AllocationHandle handle, const MemLocation& location) {
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
    const Status status = RIDGE_CUDA(context_, MemAlloc, &at_, static_cast<size_t>(bytes));
    if (!status.ok()) return NoArena(context_, bytes, status);
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
    const Status status = RIDGE_CUDA(context_, MemHostAlloc, &at_, static_cast<size_t>(bytes), 0);
    if (!status.ok()) return NotLocked(bytes, status);
    data_ = static_cast<std::byte*>(at_);
    return Status();
  }

 private:
  void* at_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<Memory>> MapArena(CudaContext& context, int64_t bytes, int64_t page_bytes,
                                         const HostPart& host, int nearest) {
  if (!context.Ready()) return context.error();
  const int64_t whole = WholePages(bytes, page_bytes);
  auto memory = std::make_unique<MappedMemory>(context);
  RIDGE_RETURN_IF_ERROR(memory->Map(whole, page_bytes, host, nearest));
  return std::unique_ptr<Memory>(std::move(memory));
}

Result<std::unique_ptr<Memory>> AllocateArena(CudaContext& context, int64_t bytes,
                                              int64_t page_bytes) {
  if (!context.Ready()) return context.error();
  auto memory = std::make_unique<AllocatedMemory>(context);
  RIDGE_RETURN_IF_ERROR(memory->Allocate(WholePages(bytes, page_bytes)));
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
