// The C interface of NVML, NVIDIA's management library, as far as it is used.
//
// libnvidia-ml keeps this ABI: what changes gets a new symbol (nvmlInit_v2) or a new `version` in
// the structure.  tests/fake_cuda/header/ compares it with NVIDIA's nvml.h where that is installed.
#pragma once
#include <cstdint>

namespace ridge::cuda {

// nvmlReturn_t.  Only those that the code or its tests tell apart; any other number may come back.
enum class NvmlCode : int {
  kSuccess = 0,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kNotFound = 6,
  kInsufficientSize = 7,
};

using NvmlDevice = struct NvmlDeviceOpaque*;
using NvmlGpmSample = struct NvmlGpmSampleOpaque*;

// Enumerations: the only values that are used.
inline constexpr int kNvmlCoreTemperature = 0;
inline constexpr int kNvmlSmClock = 1;
inline constexpr int kNvmlCorrected = 0, kNvmlUncorrected = 1;  // errors of memory
inline constexpr int kNvmlSinceDriverLoad = 0;                  // "volatile" counts of errors

// nvmlClocksEventReasons: what holds the clock down.
inline constexpr unsigned long long kNvmlPowerCap = 0x04, kNvmlPowerBrake = 0x80;
inline constexpr unsigned long long kNvmlHardwareSlowdown = 0x08;  // by heat or power
inline constexpr unsigned long long kNvmlSoftwareThermal = 0x20, kNvmlHardwareThermal = 0x40;
inline constexpr unsigned long long kNvmlApplicationClocks = 0x02, kNvmlSyncBoost = 0x10;

struct NvmlUtilization {
  unsigned int gpu;     // percent of the time in which a kernel ran
  unsigned int memory;  // percent of the time in which memory was read or written
};
struct NvmlMemory {
  unsigned long long total, free, used;
};
// What the driver reserves for itself has its own number; `used` may have it too.
struct NvmlMemoryV2 {
  unsigned int version;  // kNvmlMemoryV2
  unsigned long long total, reserved, free, used;
};
inline constexpr unsigned int kNvmlMemoryV2 = sizeof(NvmlMemoryV2) | (2U << 24U);

struct NvmlProcess {
  unsigned int pid;               // as the driver sees it: a container has other numbers
  unsigned long long used_bytes;  // or kNvmlNotAvailable
  unsigned int gpu_instance, compute_instance;
};
inline constexpr unsigned long long kNvmlNotAvailable = ~0ULL;

inline constexpr unsigned int kNvmlUuidBytes = 96;  // with the 0 behind

// GPM, the metrics of Hopper and newer, are of the time between two samples.
inline constexpr unsigned int kNvmlGpmSmUtilization = 2;  // percent of SMs that were busy
inline constexpr unsigned int kNvmlGpmAnyTensor = 5;      // percent of the SMs' time
inline constexpr unsigned int kNvmlGpmMemory = 10;        // percent of the peak bandwidth
inline constexpr int kNvmlGpmMostMetrics = 333;  // of the newest header; a call names fewer
struct NvmlGpmMetric {
  unsigned int id;
  NvmlCode code;
  double value;
  struct {
    char *short_name, *long_name, *unit;
  } info;
};
struct NvmlGpmMetrics {
  unsigned int version;  // 1
  unsigned int count;    // of `metrics` that are asked for
  NvmlGpmSample begin, end;
  NvmlGpmMetric metrics[kNvmlGpmMostMetrics];
};
struct NvmlGpmSupport {
  unsigned int version;  // 1
  unsigned int is_supported;
};

// F(name, symbol, parameters), for each function that is used.
#define RIDGE_NVML_FUNCTIONS(F)                                                                    \
  F(Init, nvmlInit_v2, ())                                                                         \
  F(Shutdown, nvmlShutdown, ())                                                                    \
  F(DeviceGetHandleByUUID, nvmlDeviceGetHandleByUUID, (const char* uuid, NvmlDevice* device))      \
  F(DeviceGetCount, nvmlDeviceGetCount_v2, (unsigned int* count))                                  \
  F(DeviceGetHandleByIndex, nvmlDeviceGetHandleByIndex_v2,                                         \
    (unsigned int index, NvmlDevice* device))                                                      \
  F(DeviceGetUuid, nvmlDeviceGetUUID, (NvmlDevice device, char* uuid, unsigned int bytes))         \
  F(DeviceGetMemoryInfoV2, nvmlDeviceGetMemoryInfo_v2, (NvmlDevice device, NvmlMemoryV2 * memory)) \
  F(DeviceGetComputeRunningProcesses, nvmlDeviceGetComputeRunningProcesses_v3,                     \
    (NvmlDevice device, unsigned int* count, NvmlProcess* processes))                              \
  F(DeviceGetUtilizationRates, nvmlDeviceGetUtilizationRates,                                      \
    (NvmlDevice device, NvmlUtilization * utilization))                                            \
  F(DeviceGetMemoryInfo, nvmlDeviceGetMemoryInfo, (NvmlDevice device, NvmlMemory * memory))        \
  F(DeviceGetPowerUsage, nvmlDeviceGetPowerUsage, (NvmlDevice device, unsigned int* milliwatts))   \
  F(DeviceGetTemperature, nvmlDeviceGetTemperature,                                                \
    (NvmlDevice device, int sensor, unsigned int* celsius))                                        \
  F(DeviceGetClockInfo, nvmlDeviceGetClockInfo, (NvmlDevice device, int clock, unsigned int* mhz)) \
  F(DeviceGetCurrentClocksEventReasons, nvmlDeviceGetCurrentClocksEventReasons,                    \
    (NvmlDevice device, unsigned long long* reasons))                                              \
  F(DeviceGetTotalEnergyConsumption, nvmlDeviceGetTotalEnergyConsumption,                          \
    (NvmlDevice device, unsigned long long* millijoules))                                          \
  F(DeviceGetTotalEccErrors, nvmlDeviceGetTotalEccErrors,                                          \
    (NvmlDevice device, int error, int since, unsigned long long* count))                          \
  F(GpmQueryDeviceSupport, nvmlGpmQueryDeviceSupport,                                              \
    (NvmlDevice device, NvmlGpmSupport * support))                                                 \
  F(GpmSampleAlloc, nvmlGpmSampleAlloc, (NvmlGpmSample * sample))                                  \
  F(GpmSampleFree, nvmlGpmSampleFree, (NvmlGpmSample sample))                                      \
  F(GpmSampleGet, nvmlGpmSampleGet, (NvmlDevice device, NvmlGpmSample sample))                     \
  F(GpmMetricsGet, nvmlGpmMetricsGet, (NvmlGpmMetrics * metrics))

// The functions of a library that was opened; those that it lacks are nullptr.
struct NvmlTable {
#define RIDGE_NVML_MEMBER(name, symbol, parameters) NvmlCode(*name) parameters = nullptr;
  RIDGE_NVML_FUNCTIONS(RIDGE_NVML_MEMBER)
#undef RIDGE_NVML_MEMBER
  const char* (*ErrorString)(NvmlCode code) = nullptr;  // nvmlErrorString: never nullptr
};

}  // namespace ridge::cuda
