// libnvidia-ml.so.1 of the GPUs of the fake driver: it tells what RIDGE_FAKE_NVML says.
//
//   RIDGE_FAKE_NVML="utilization=96,power_mw=412000/500000,clock=-"
//
// A counter with several values tells them one after the other, and the last one from then on; one
// with "-" is not supported.  They are read by each nvmlInit_v2 before which nobody has begun.
// Bytes in use are the fake driver's where `used` says no others.  `processes` are others, each of
// `process_bytes`; a process with a context has the number `own`, 0 for its own one.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "ridge/backend/cuda/nvml_abi.h"
#include "tests/fake_cuda/fake_hooks.h"

namespace ridge::fake_cuda {
namespace {

using namespace cuda;

constexpr NvmlCode kOk = NvmlCode::kSuccess;
using Number = unsigned long long;

struct Script {
  std::vector<std::string> values;
  size_t next = 0;
};

struct State {
  std::mutex lock;
  std::map<std::string, Script> scripts;
  int started = 0, samples = 0;  // alive
};

State& TheState() {
  static State state;
  return state;
}

// What a GPU tells where nothing else is said.
std::string Usual() {
  return "init=0,utilization=95,memory=1073741824,power_mw=400000,temperature=60,clock=1980,"
         "reasons=0,energy_mj=0/1000000,corrected=0,uncorrected=0,gpm=1,sm=90,tensor=40,dram=50,"
         "gpus=1,processes=0,process_bytes=1048576,own=0,";
}

void ReadScripts() {
  const char* const said = std::getenv("RIDGE_FAKE_NVML");
  std::istringstream all(Usual() + (said == nullptr ? "" : said));
  TheState().scripts.clear();
  for (std::string item; std::getline(all, item, ',');) {
    const size_t at = item.find('=');
    Script& script = TheState().scripts[item.substr(0, at)];
    script = {};
    std::istringstream values(item.substr(at + 1));
    for (std::string value; std::getline(values, value, '/');) script.values.push_back(value);
  }
}

bool Knows(const std::string& counter) { return TheState().scripts.count(counter) > 0; }

std::optional<Number> Next(const std::string& counter) {
  const std::lock_guard hold(TheState().lock);
  Script& script = TheState().scripts[counter];
  const std::string& value = script.values[script.next];
  if (script.next + 1 < script.values.size()) ++script.next;
  if (value == "-") return std::nullopt;
  return std::strtoull(value.c_str(), nullptr, 10);
}

// A GPU's number is in its UUID (UuidOf in fake_state.cc); a handle is the number and 1.
NvmlDevice Handle(uint64_t number) { return reinterpret_cast<NvmlDevice>(number + 1); }
Number NumberOf(NvmlDevice device) { return reinterpret_cast<uint64_t>(device) - 1; }

// Of the fake driver, which may not be open yet.
Number UsedBytes(NvmlDevice device, int* contexts) {
  *contexts = 0;
  void* const driver = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  const auto used = driver == nullptr
                        ? nullptr
                        : reinterpret_cast<UsedFunction>(::dlsym(driver, "ridge_fake_cuda_used"));
  if (used != nullptr) return used(static_cast<int>(NumberOf(device)), contexts);
  const char* const others = std::getenv("RIDGE_FAKE_CUDA_OTHERS_BYTES");
  return others == nullptr ? 0 : std::strtoull(others, nullptr, 10);
}

std::vector<NvmlProcess> Processes(NvmlDevice device) {
  std::vector<NvmlProcess> processes;
  const Number others = Next("processes").value_or(0);
  for (unsigned int i = 0; i < others; ++i)
    processes.push_back({1000 + i, Next("process_bytes").value_or(kNvmlNotAvailable), 0, 0});
  int contexts = 0;
  (void)UsedBytes(device, &contexts);
  const auto own = static_cast<unsigned int>(Next("own").value_or(0));
  if (contexts > 0)
    processes.push_back({own == 0 ? static_cast<unsigned int>(::getpid()) : own, 0, 0, 0});
  return processes;
}

template <typename T>
NvmlCode Tell(const std::string& counter, T* to, Number more = 0) {
  const std::optional<Number> value = Next(counter);
  if (!value) return NvmlCode::kNotSupported;
  *to = static_cast<T>(*value + more);
  return kOk;
}

const char* GpmCounter(unsigned int id) {
  return id == kNvmlGpmSmUtilization ? "sm" : id == kNvmlGpmAnyTensor ? "tensor" : "dram";
}

}  // namespace

extern "C" {

NvmlCode nvmlInit_v2() {
  if (TheState().started == 0) ReadScripts();
  const auto code = static_cast<NvmlCode>(Next("init").value_or(0));
  if (code == kOk) ++TheState().started;
  return code;
}

const char* nvmlErrorString(NvmlCode code) {
  return static_cast<int>(code) == 9 ? "Driver Not Loaded" : "Unknown Error";
}

NvmlCode nvmlShutdown() {
  --TheState().started;
  return kOk;
}

NvmlCode nvmlDeviceGetHandleByUUID(const char* uuid, NvmlDevice* device) {
  if (std::strncmp(uuid, "GPU-a", 5) != 0 && std::strncmp(uuid, "MIG-a", 5) != 0)
    return NvmlCode::kNotFound;
  *device = Handle(static_cast<uint64_t>(uuid[5] - '0'));
  return kOk;
}

NvmlCode nvmlDeviceGetCount_v2(unsigned int* count) { return Tell("gpus", count); }

NvmlCode nvmlDeviceGetHandleByIndex_v2(unsigned int index, NvmlDevice* device) {
  *device = Handle(index);
  return kOk;
}

NvmlCode nvmlDeviceGetUUID(NvmlDevice device, char* uuid, unsigned int bytes) {
  const auto b = static_cast<unsigned int>(0xa0 + NumberOf(device));
  std::snprintf(uuid, bytes,
                "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b, b, b,
                b, b, b, b, b, b, b, b, b, b, b, b, b);
  return kOk;
}

NvmlCode nvmlDeviceGetMemoryInfo_v2(NvmlDevice device, NvmlMemoryV2* memory) {
  if (memory->version != kNvmlMemoryV2) return NvmlCode::kInvalidArgument;
  if (Knows("used")) return Tell("used", &memory->used);
  int contexts = 0;
  memory->used = UsedBytes(device, &contexts);
  return kOk;
}

NvmlCode nvmlDeviceGetComputeRunningProcesses_v3(NvmlDevice device, unsigned int* count,
                                                 NvmlProcess* to) {
  if (TheState().scripts["processes"].values.front() == "-") return NvmlCode::kNotSupported;
  const std::vector<NvmlProcess> processes = Processes(device);
  const unsigned int room = *count;
  *count = static_cast<unsigned int>(processes.size());
  if (room < *count) return NvmlCode::kInsufficientSize;
  std::copy(processes.begin(), processes.end(), to);
  return kOk;
}

NvmlCode nvmlDeviceGetUtilizationRates(NvmlDevice, NvmlUtilization* utilization) {
  utilization->memory = 0;
  return Tell("utilization", &utilization->gpu);
}

NvmlCode nvmlDeviceGetMemoryInfo(NvmlDevice, NvmlMemory* memory) {
  return Tell("memory", &memory->used);
}

NvmlCode nvmlDeviceGetPowerUsage(NvmlDevice, unsigned int* milliwatts) {
  return Tell("power_mw", milliwatts);
}

// One degree more for each GPU before it.
NvmlCode nvmlDeviceGetTemperature(NvmlDevice device, int sensor, unsigned int* celsius) {
  if (sensor != kNvmlCoreTemperature) return NvmlCode::kInvalidArgument;
  return Tell("temperature", celsius, NumberOf(device));
}

NvmlCode nvmlDeviceGetClockInfo(NvmlDevice, int clock, unsigned int* mhz) {
  return clock == kNvmlSmClock ? Tell("clock", mhz) : NvmlCode::kInvalidArgument;
}

NvmlCode nvmlDeviceGetCurrentClocksEventReasons(NvmlDevice, Number* reasons) {
  return Tell("reasons", reasons);
}

NvmlCode nvmlDeviceGetTotalEnergyConsumption(NvmlDevice, Number* millijoules) {
  return Tell("energy_mj", millijoules);
}

NvmlCode nvmlDeviceGetTotalEccErrors(NvmlDevice, int error, int since, Number* count) {
  if (since != kNvmlSinceDriverLoad) return NvmlCode::kInvalidArgument;
  return Tell(error == kNvmlCorrected ? "corrected" : "uncorrected", count);
}

NvmlCode nvmlGpmQueryDeviceSupport(NvmlDevice, NvmlGpmSupport* support) {
  if (support->version != 1) return NvmlCode::kInvalidArgument;
  return Tell("gpm", &support->is_supported);
}

NvmlCode nvmlGpmSampleAlloc(NvmlGpmSample* sample) {
  ++TheState().samples;
  *sample = reinterpret_cast<NvmlGpmSample>(new int(0));
  return kOk;
}

NvmlCode nvmlGpmSampleFree(NvmlGpmSample sample) {
  --TheState().samples;
  delete reinterpret_cast<int*>(sample);
  return kOk;
}

// A sample is its number.
NvmlCode nvmlGpmSampleGet(NvmlDevice, NvmlGpmSample sample) {
  static int taken = 0;
  *reinterpret_cast<int*>(sample) = ++taken;
  return kOk;
}

NvmlCode nvmlGpmMetricsGet(NvmlGpmMetrics* metrics) {
  const int begin = *reinterpret_cast<int*>(metrics->begin);
  const int end = *reinterpret_cast<int*>(metrics->end);
  if (metrics->version != 1 || begin == 0 || end <= begin) return NvmlCode::kInvalidArgument;
  for (unsigned int i = 0; i < metrics->count; ++i) {
    NvmlGpmMetric& metric = metrics->metrics[i];
    metric.code = Tell(GpmCounter(metric.id), &metric.value);
  }
  return kOk;
}

// Of tests: calls of nvmlInit_v2 and samples that nobody has ended.
int ridge_fake_nvml_alive() { return TheState().started + TheState().samples; }

}  // extern "C"

}  // namespace ridge::fake_cuda
