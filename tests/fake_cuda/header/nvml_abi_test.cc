// Our declarations of NVML against NVIDIA's.  Compiled where nvml.h is found.
#include "ridge/backend/cuda/nvml_abi.h"

#include <gtest/gtest.h>
#include <nvml.h>

#include <cstddef>
#include <type_traits>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace ridge::cuda {
namespace {

// --- functions: the same number of parameters, each of the same size and kind --------------------

template <typename A, typename B>
constexpr bool kNvmlSameKind =
    sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>;

template <typename Ours, typename Theirs>
constexpr bool kNvmlSameShape = false;
template <typename R, typename... A, typename S, typename... B>
constexpr bool kNvmlSameShape<R (*)(A...), S (*)(B...)> = [] {
  if constexpr (sizeof...(A) != sizeof...(B)) {
    return false;
  } else {
    return kNvmlSameKind<R, S> && (kNvmlSameKind<A, B> && ...);
  }
}();

#define RIDGE_TEST_NVML_SHAPE(name, symbol, parameters) \
  static_assert(kNvmlSameShape<decltype(NvmlTable::name), decltype(&::symbol)>, #name);
RIDGE_NVML_FUNCTIONS(RIDGE_TEST_NVML_SHAPE)
static_assert(kNvmlSameShape<decltype(NvmlTable::ErrorString), decltype(&::nvmlErrorString)>);

static_assert(!kNvmlSameShape<int (*)(int*), int (*)(long)>);

// --- structs -------------------------------------------------------------------------------------

static_assert(sizeof(NvmlUtilization) == sizeof(nvmlUtilization_t));
static_assert(offsetof(NvmlUtilization, gpu) == offsetof(nvmlUtilization_t, gpu));
static_assert(sizeof(NvmlMemory) == sizeof(nvmlMemory_t));
static_assert(offsetof(NvmlMemory, used) == offsetof(nvmlMemory_t, used));
static_assert(sizeof(NvmlMemoryV2) == sizeof(nvmlMemory_v2_t));
static_assert(offsetof(NvmlMemoryV2, used) == offsetof(nvmlMemory_v2_t, used));
static_assert(sizeof(NvmlProcess) == sizeof(nvmlProcessInfo_t));
static_assert(offsetof(NvmlProcess, used_bytes) == offsetof(nvmlProcessInfo_t, usedGpuMemory));
static_assert(sizeof(NvmlGpmSupport) == sizeof(nvmlGpmSupport_t));
static_assert(offsetof(NvmlGpmSupport, is_supported) ==
              offsetof(nvmlGpmSupport_t, isSupportedDevice));
static_assert(sizeof(NvmlGpmMetric) == sizeof(nvmlGpmMetric_t));
static_assert(offsetof(NvmlGpmMetric, code) == offsetof(nvmlGpmMetric_t, nvmlReturn));
static_assert(offsetof(NvmlGpmMetric, value) == offsetof(nvmlGpmMetric_t, value));
static_assert(offsetof(NvmlGpmMetrics, count) == offsetof(nvmlGpmMetricsGet_t, numMetrics));
static_assert(offsetof(NvmlGpmMetrics, begin) == offsetof(nvmlGpmMetricsGet_t, sample1));
static_assert(offsetof(NvmlGpmMetrics, end) == offsetof(nvmlGpmMetricsGet_t, sample2));
static_assert(offsetof(NvmlGpmMetrics, metrics) == offsetof(nvmlGpmMetricsGet_t, metrics));

// --- values --------------------------------------------------------------------------------------

#define RIDGE_TEST_NVML_VALUES(V)                                           \
  V(NvmlCode::kSuccess, NVML_SUCCESS)                                       \
  V(NvmlCode::kInvalidArgument, NVML_ERROR_INVALID_ARGUMENT)                \
  V(NvmlCode::kNotSupported, NVML_ERROR_NOT_SUPPORTED)                      \
  V(NvmlCode::kNotFound, NVML_ERROR_NOT_FOUND)                              \
  V(NvmlCode::kInsufficientSize, NVML_ERROR_INSUFFICIENT_SIZE)              \
  V(kNvmlMemoryV2, nvmlMemory_v2)                                           \
  V(kNvmlNotAvailable, NVML_VALUE_NOT_AVAILABLE)                            \
  V(kNvmlUuidBytes, NVML_DEVICE_UUID_V2_BUFFER_SIZE)                        \
  V(kNvmlCoreTemperature, NVML_TEMPERATURE_GPU)                             \
  V(kNvmlSmClock, NVML_CLOCK_SM)                                            \
  V(kNvmlCorrected, NVML_MEMORY_ERROR_TYPE_CORRECTED)                       \
  V(kNvmlUncorrected, NVML_MEMORY_ERROR_TYPE_UNCORRECTED)                   \
  V(kNvmlSinceDriverLoad, NVML_VOLATILE_ECC)                                \
  V(kNvmlApplicationClocks, nvmlClocksEventReasonApplicationsClocksSetting) \
  V(kNvmlSyncBoost, nvmlClocksEventReasonSyncBoost)                         \
  V(kNvmlHardwareSlowdown, nvmlClocksThrottleReasonHwSlowdown)              \
  V(kNvmlPowerCap, nvmlClocksEventReasonSwPowerCap)                         \
  V(kNvmlPowerBrake, nvmlClocksThrottleReasonHwPowerBrakeSlowdown)          \
  V(kNvmlSoftwareThermal, nvmlClocksEventReasonSwThermalSlowdown)           \
  V(kNvmlHardwareThermal, nvmlClocksThrottleReasonHwThermalSlowdown)        \
  V(kNvmlGpmSmUtilization, NVML_GPM_METRIC_SM_UTIL)                         \
  V(kNvmlGpmAnyTensor, NVML_GPM_METRIC_ANY_TENSOR_UTIL)                     \
  V(kNvmlGpmMemory, NVML_GPM_METRIC_DRAM_BW_UTIL)                           \
  V(1, NVML_GPM_METRICS_GET_VERSION)                                        \
  V(1, NVML_GPM_SUPPORT_VERSION)

#define RIDGE_TEST_NVML_SAME(ours, theirs) \
  static_assert(static_cast<long long>(ours) == static_cast<long long>(theirs), #theirs);
RIDGE_TEST_NVML_VALUES(RIDGE_TEST_NVML_SAME)

// The compiler has done the work.
TEST(NvmlAbi, IsTheOneOfNvidiasHeader) { EXPECT_GT(NVML_API_VERSION, 0); }

}  // namespace
}  // namespace ridge::cuda
