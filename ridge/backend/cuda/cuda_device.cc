#include "ridge/backend/cuda/cuda_device.h"

#include <fmt/format.h>

#include <cstdlib>

#include "ridge/backend/cuda/cuda_memory.h"
#include "ridge/core/units.h"

namespace ridge::cuda {
namespace {

constexpr int64_t kAlignmentBytes = 256;

Status CheckVisibleDevices(int64_t shown) {
  const char* const text = std::getenv("CUDA_VISIBLE_DEVICES");
  RIDGE_ASSIGN_OR_RETURN(
      const VisibleDevices visible,
      ParseVisibleDevices(text == nullptr ? std::nullopt : std::optional<std::string>(text)));
  return CheckShown(visible, shown);
}

}  // namespace

Result<std::unique_ptr<CudaDevice>> CudaDevice::Open(const Driver& driver, int ordinal,
                                                     const CudaOptions& options) {
  RIDGE_ASSIGN_OR_RETURN(std::vector<GpuFacts> gpus, ListGpus(driver));
  RIDGE_RETURN_IF_ERROR(CheckVisibleDevices(static_cast<int64_t>(gpus.size())));
  if (ordinal < 0 || static_cast<size_t>(ordinal) >= gpus.size()) {
    return Status(ErrorCode::kDevice,
                  fmt::format("there is no cuda:{}: the driver shows {}. hint: cuda:0", ordinal,
                              FormatCountOf(static_cast<int64_t>(gpus.size()), "GPU")));
  }
  RIDGE_ASSIGN_OR_RETURN(std::unique_ptr<CudaContext> context,
                         CudaContext::Retain(driver, ordinal));
  std::unique_ptr<CudaDevice> device(
      new CudaDevice(std::move(gpus[static_cast<size_t>(ordinal)]), std::move(context)));
  RIDGE_RETURN_IF_ERROR(device->FindPageBytes());
  RIDGE_RETURN_IF_ERROR(device->MakeStreams(options));
  return device;
}

CudaDevice::CudaDevice(GpuFacts gpu, std::unique_ptr<CudaContext> context)
    : gpu_(std::move(gpu)), context_(std::move(context)) {}

CudaDevice::~CudaDevice() = default;

Status CudaDevice::FindPageBytes() {
  MemAllocationProp prop = {};
  prop.type = kAllocationPinned;
  prop.location = {kLocationDevice, context_->ordinal()};
  size_t bytes = size_t{2} << 20, host_bytes = 0;
  if (gpu_.maps_memory) {
    RIDGE_RETURN_IF_ERROR(
        RIDGE_CUDA(*context_, MemGetAllocationGranularity, &bytes, &prop, kGranularityMinimum));
  }
  if (gpu_.maps_host_memory) {
    prop.location = {kLocationHost, 0};
    RIDGE_RETURN_IF_ERROR(RIDGE_CUDA(*context_, MemGetAllocationGranularity, &host_bytes, &prop,
                                     kGranularityMinimum));
  }
  page_bytes_ = static_cast<int64_t>(std::max(bytes, host_bytes));  // powers of two
  return Status();
}

Status CudaDevice::MakeStreams(const CudaOptions& options) {
  for (int i = 0; i < options.compute_streams; ++i) {
    const bool records = options.records && i == 0;
    RIDGE_ASSIGN_OR_RETURN(streams_.emplace_back(), CudaStream::Create(*context_, records));
  }
  clock_ = std::make_unique<CudaClock>(*context_, *streams_[0], options.clock_span_s);
  return context_->error();
}

MemorySpace CudaDevice::memory_space() const {
  return {.alignment_bytes = kAlignmentBytes,
          .page_bytes = page_bytes_,
          .shared = false,
          .host_visible = false};
}

Result<std::unique_ptr<Memory>> CudaDevice::Allocate(int64_t bytes) {
  return gpu_.maps_memory ? MapArena(*context_, bytes, page_bytes_)
                          : AllocateArena(*context_, bytes, page_bytes_);
}

Result<std::unique_ptr<Memory>> CudaDevice::AllocateWithHost(int64_t bytes, const HostPart& host) {
  const auto refused = [&](const char* what, const char* without) {
    return Status(
        ErrorCode::kUnsupported,
        fmt::format("cuda:{}: {} maps no memory of {}. hint: a driver of CUDA 13 or newer, "
                    "or {}",
                    context_->ordinal(), gpu_.name, what, without));
  };
  if (!gpu_.maps_host_memory) return refused("the host", "neither --offload nor --place");
  if (host.followed && !gpu_.maps_host_node)
    return refused("a NUMA node of the host, which its cores follow", "no --place");
  return MapArena(*context_, bytes, page_bytes_, host, gpu_.host_numa_node);
}

Result<std::unique_ptr<Memory>> CudaDevice::AllocateStaging(int64_t bytes) {
  return AllocateHost(*context_, bytes);
}

std::unique_ptr<Event> CudaDevice::MakeEvent() {
  return std::make_unique<CudaEvent>(*context_, clock_.get());
}

void CudaDevice::ForEachPart(int parts, PartFunction f) {
  for (int part = 0; part < parts; ++part) f(part);
}

Result<int64_t> CudaDevice::FreeBytes() {
  if (!context_->Ready()) return context_->error();
  size_t free = 0, total = 0;
  RIDGE_RETURN_IF_ERROR(RIDGE_CUDA(*context_, MemGetInfo, &free, &total));
  return static_cast<int64_t>(free);
}

std::optional<int64_t> CudaDevice::used_bytes() {
  const Result<int64_t> free = FreeBytes();
  return gpu_.memory_bytes - (free.ok() ? *free : 0);
}

}  // namespace ridge::cuda
