// A counter is asked for again at each reading, also after a failure: rights and modes of a GPU
// change while the driver runs.
#include "ridge/backend/cuda/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <utility>

#include "ridge/core/process.h"

namespace ridge::cuda {
namespace {

constexpr char kSoname[] = "libnvidia-ml.so.1";
constexpr double kLeastSpan_s = 0.1;  // between two samples of GPM: it refreshes no faster

Status NoCounters(const std::string& text) { return Status(ErrorCode::kDevice, text); }

NvmlTable Resolve(void* library) {
  NvmlTable table;
#define RIDGE_NVML_RESOLVE(name, symbol, parameters) \
  table.name = reinterpret_cast<decltype(table.name)>(::dlsym(library, #symbol));
  RIDGE_NVML_FUNCTIONS(RIDGE_NVML_RESOLVE)
#undef RIDGE_NVML_RESOLVE
  table.ErrorString =
      reinterpret_cast<decltype(table.ErrorString)>(::dlsym(library, "nvmlErrorString"));
  return table;
}

// "nvmlInit_v2 failed: Driver Not Loaded (9)".
Status Failed(const NvmlTable& table, const char* function, NvmlCode code) {
  const char* const words = table.ErrorString == nullptr ? "error" : table.ErrorString(code);
  return NoCounters(fmt::format("{} failed: {} ({})", function, words, static_cast<int>(code)));
}

// Whether the library has the function and it succeeds.
template <typename Function, typename... Arguments>
bool Ask(Function function, Arguments... arguments) {
  return function != nullptr && function(arguments...) == NvmlCode::kSuccess;
}

}  // namespace

Result<std::unique_ptr<NvmlLibrary>> NvmlLibrary::Open(const LibrarySearch& search) {
  RIDGE_ASSIGN_OR_RETURN(const OpenLibrary found, FindLibrary(search, kSoname));
  const NvmlTable table = Resolve(found.handle);
  if (table.Init == nullptr || table.Shutdown == nullptr || table.DeviceGetHandleByUUID == nullptr)
    return NoCounters(fmt::format("{} is no NVML", found.path));
  std::unique_ptr<NvmlLibrary> library(new NvmlLibrary(table, found.path));
  if (const NvmlCode code = table.Init(); code != NvmlCode::kSuccess)
    return Failed(table, "nvmlInit_v2", code);
  library->started_ = true;
  return library;
}

NvmlLibrary::~NvmlLibrary() {
  if (started_) table_.Shutdown();
}

Result<NvmlDevice> NvmlLibrary::Find(const std::string& uuid) const {
  NvmlDevice device = nullptr;
  const NvmlCode code = table_.DeviceGetHandleByUUID(uuid.c_str(), &device);
  if (code == NvmlCode::kNotFound) return NoCounters(fmt::format("{} knows no {}", path_, uuid));
  if (code != NvmlCode::kSuccess) return Failed(table_, "nvmlDeviceGetHandleByUUID", code);
  return device;
}

Result<std::unique_ptr<Nvml>> Nvml::Open(const std::string& uuid, const LibrarySearch& search) {
  RIDGE_ASSIGN_OR_RETURN(std::unique_ptr<NvmlLibrary> library, NvmlLibrary::Open(search));
  RIDGE_ASSIGN_OR_RETURN(const NvmlDevice device, library->Find(uuid));
  std::unique_ptr<Nvml> nvml(new Nvml(std::move(library), device));
  nvml->OpenGpm();
  return nvml;
}

Nvml::Nvml(std::unique_ptr<NvmlLibrary> library, NvmlDevice device)
    : library_(std::move(library)), table_(library_->table()), device_(device) {}

Nvml::~Nvml() {
  if (before_ != nullptr) table_.GpmSampleFree(before_);
  if (now_ != nullptr) table_.GpmSampleFree(now_);
}

void Nvml::OpenGpm() {
  NvmlGpmSupport support = {.version = 1, .is_supported = 0};
  const bool complete = table_.GpmSampleFree != nullptr && table_.GpmSampleGet != nullptr;
  if (!complete || !Ask(table_.GpmQueryDeviceSupport, device_, &support)) return;
  if (support.is_supported == 0 || !Ask(table_.GpmSampleAlloc, &before_)) return;
  if (Ask(table_.GpmSampleAlloc, &now_)) return;
  table_.GpmSampleFree(std::exchange(before_, nullptr));
}

DeviceCounters Nvml::Read() {
  DeviceCounters counters;
  ReadLevels(counters);
  ReadLimits(counters);
  ReadTotals(counters);
  ReadGpm(counters);
  return counters;
}

void Nvml::ReadLevels(DeviceCounters& counters) const {
  NvmlUtilization utilization = {};
  if (Ask(table_.DeviceGetUtilizationRates, device_, &utilization))
    counters.utilization = utilization.gpu / 100.0;
  NvmlMemory memory = {};
  if (Ask(table_.DeviceGetMemoryInfo, device_, &memory))
    counters.memory_bytes = static_cast<double>(memory.used);
  unsigned int value = 0;
  if (Ask(table_.DeviceGetPowerUsage, device_, &value)) counters.power_w = value / 1000.0;
  if (Ask(table_.DeviceGetTemperature, device_, kNvmlCoreTemperature, &value))
    counters.temperature_c = value;
  if (Ask(table_.DeviceGetClockInfo, device_, kNvmlSmClock, &value)) counters.clock_mhz = value;
}

void Nvml::ReadLimits(DeviceCounters& counters) const {
  unsigned long long reasons = 0;
  if (!Ask(table_.DeviceGetCurrentClocksEventReasons, device_, &reasons)) return;
  const auto any = [&](unsigned long long of) { return (reasons & of) != 0 ? 1.0 : 0.0; };
  counters.thermal_limit = any(kNvmlSoftwareThermal | kNvmlHardwareThermal);
  // Hardware that slows down without heat is short of power.
  const bool is_hot = (reasons & kNvmlHardwareThermal) != 0;
  counters.power_limit =
      any(kNvmlPowerCap | kNvmlPowerBrake | (is_hot ? 0 : kNvmlHardwareSlowdown));
  counters.clock_setting = any(kNvmlApplicationClocks | kNvmlSyncBoost);
}

void Nvml::ReadTotals(DeviceCounters& counters) const {
  unsigned long long value = 0;
  if (Ask(table_.DeviceGetTotalEnergyConsumption, device_, &value))
    counters.energy_j = static_cast<double>(value) / 1000;
  if (Ask(table_.DeviceGetTotalEccErrors, device_, kNvmlCorrected, kNvmlSinceDriverLoad, &value))
    counters.corrected_errors = static_cast<double>(value);
  if (Ask(table_.DeviceGetTotalEccErrors, device_, kNvmlUncorrected, kNvmlSinceDriverLoad, &value))
    counters.uncorrected_errors = static_cast<double>(value);
}

void Nvml::ReadGpm(DeviceCounters& counters) {
  const double now_s = MonotonicSeconds();
  if (now_ == nullptr || (before_s_ > 0 && now_s - before_s_ < kLeastSpan_s)) return;
  if (!Ask(table_.GpmSampleGet, device_, now_)) return;
  if (before_s_ > 0) ReadShares(counters);
  std::swap(before_, now_);
  before_s_ = now_s;
}

// Between before_ and now_.
void Nvml::ReadShares(DeviceCounters& counters) {
  constexpr std::pair<unsigned int, std::optional<double> DeviceCounters::*> kShares[] = {
      {kNvmlGpmSmUtilization, &DeviceCounters::sm_share},
      {kNvmlGpmAnyTensor, &DeviceCounters::tensor_share},
      {kNvmlGpmMemory, &DeviceCounters::bandwidth_share}};
  metrics_.version = 1;
  metrics_.count = static_cast<unsigned int>(std::size(kShares));
  metrics_.begin = before_;
  metrics_.end = now_;
  for (size_t i = 0; i < std::size(kShares); ++i) {
    metrics_.metrics[i] = {};
    metrics_.metrics[i].id = kShares[i].first;
  }
  if (!Ask(table_.GpmMetricsGet, &metrics_)) return;
  for (size_t i = 0; i < std::size(kShares); ++i) {
    const NvmlGpmMetric& metric = metrics_.metrics[i];
    if (metric.code == NvmlCode::kSuccess) counters.*kShares[i].second = metric.value / 100;
  }
}

std::string UntoldCounters(const DeviceCounters& counters) {
  constexpr std::pair<const char*, std::optional<double> DeviceCounters::*> kOfEvery[] = {
      {"load", &DeviceCounters::utilization},
      {"power", &DeviceCounters::power_w},
      {"temperature", &DeviceCounters::temperature_c},
      {"clock", &DeviceCounters::clock_mhz},
      {"memory", &DeviceCounters::memory_bytes}};
  std::string text;
  for (const auto& [name, value] : kOfEvery) {
    if (!(counters.*value)) text += fmt::format("{}{}", text.empty() ? "" : ", ", name);
  }
  return text;
}

}  // namespace ridge::cuda
