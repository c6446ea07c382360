#include "ridge/backend/cuda/gpu_bytes.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

namespace ridge::cuda {
namespace {

OtherProcesses Sum(const std::vector<NvmlProcess>& processes) {
  OtherProcesses sum;
  for (const NvmlProcess& process : processes) {
    ++sum.count;
    if (process.used_bytes == kNvmlNotAvailable) sum.bytes.reset();
    if (sum.bytes) *sum.bytes += static_cast<int64_t>(process.used_bytes);
  }
  return sum;
}

}  // namespace

std::unique_ptr<GpuBytesLog> GpuBytesLog::Begin(const LibrarySearch& search) {
  auto log = std::make_unique<GpuBytesLog>();
  Result<std::unique_ptr<NvmlLibrary>> nvml = NvmlLibrary::Open(search);
  if (nvml.ok()) {
    log->nvml_ = std::move(*nvml);
    log->ReadAll();
  } else {
    log->bytes_.no_before = nvml.status().message();
  }
  return log;
}

void GpuBytesLog::ReadAll() {
  const NvmlTable& table = nvml_->table();
  unsigned int count = 0;
  if (table.DeviceGetCount == nullptr || table.DeviceGetHandleByIndex == nullptr ||
      table.DeviceGetUuid == nullptr || table.DeviceGetCount(&count) != NvmlCode::kSuccess)
    return;
  for (unsigned int index = 0; index < count; ++index) {
    NvmlDevice device = nullptr;
    char uuid[kNvmlUuidBytes] = "";
    if (table.DeviceGetHandleByIndex(index, &device) == NvmlCode::kSuccess &&
        table.DeviceGetUuid(device, uuid, kNvmlUuidBytes) == NvmlCode::kSuccess)
      before_[uuid] = ReadUse(device);
  }
}

GpuBytesLog::Use GpuBytesLog::ReadUse(NvmlDevice device) const {
  const NvmlTable& table = nvml_->table();
  Use use = {.bytes = std::nullopt, .processes = ReadProcesses(device)};
  NvmlMemoryV2 memory = {};
  memory.version = kNvmlMemoryV2;
  if (table.DeviceGetMemoryInfoV2 != nullptr &&
      table.DeviceGetMemoryInfoV2(device, &memory) == NvmlCode::kSuccess)
    use.bytes = static_cast<int64_t>(memory.used);
  return use;
}

// Again with more room where a process has come meanwhile.
std::vector<NvmlProcess> GpuBytesLog::ReadProcesses(NvmlDevice device) const {
  constexpr unsigned int kRoom = 16;
  constexpr int kMostTries = 4;
  const auto function = nvml_->table().DeviceGetComputeRunningProcesses;
  std::vector<NvmlProcess> processes(kRoom);
  for (int i = 0; function != nullptr && i < kMostTries; ++i) {
    auto count = static_cast<unsigned int>(processes.size());
    const NvmlCode code = function(device, &count, processes.data());
    if (code != NvmlCode::kInsufficientSize) {
      processes.resize(code == NvmlCode::kSuccess ? count : 0);
      return processes;
    }
    processes.resize(count + kRoom);
  }
  return {};
}

void GpuBytesLog::ContextIsMade(int ordinal, const std::string& uuid, int64_t used_bytes) {
  bytes_.device = fmt::format("cuda:{}", ordinal);
  bytes_.used.context = used_bytes;
  if (nvml_ == nullptr) return;
  const Result<NvmlDevice> device = nvml_->Find(uuid);
  if (device.ok()) device_ = *device;
  const Use now = device_ ? ReadUse(*device_) : Use();
  const Use& before = before_[uuid];
  for (const NvmlProcess& process : before.processes) others_.insert(process.pid);
  bytes_.others = Sum(before.processes);
  if (now.bytes && before.bytes) {
    const int64_t context = std::clamp<int64_t>(*now.bytes - *before.bytes, 0, used_bytes);
    bytes_.used.before = used_bytes - context;
  } else {
    bytes_.no_before = fmt::format("NVML does not tell them of {}", uuid);
  }
  SeeOthers();
}

// In a container our number is another one: then we are one of those that came with the context.
std::vector<NvmlProcess> GpuBytesLog::WithoutOwn(std::vector<NvmlProcess> processes) const {
  const auto erase = [&](const auto& is_own) {
    const auto own = std::find_if(processes.begin(), processes.end(), is_own);
    if (own == processes.end()) return false;
    processes.erase(own);
    return true;
  };
  const auto own_pid = static_cast<unsigned int>(::getpid());
  if (!erase([&](const NvmlProcess& process) { return process.pid == own_pid; }))
    erase([&](const NvmlProcess& process) { return !others_.contains(process.pid); });
  return processes;
}

OtherProcesses GpuBytesLog::ReadOthers() {
  return device_ ? Sum(WithoutOwn(ReadProcesses(*device_))) : OtherProcesses();
}

}  // namespace ridge::cuda
