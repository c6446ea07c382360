// What AMD's HIP has for each function of the driver table (docs/design/0054-hip.md).  Compiled
// where HIP's headers are found.
#define __HIP_PLATFORM_AMD__
#include <gtest/gtest.h>
#include <hip/hip_runtime_api.h>
#include <hip/hiprtc.h>

#include "ridge/backend/cuda/driver_abi.h"
#include "ridge/backend/cuda/nvrtc.h"
#include "tests/fake_cuda/header/same_shape.h"

namespace ridge::cuda {
namespace {

template <typename Ours, typename Theirs>
constexpr bool kSameCall = kAlike<SameWord, Ours, Theirs>;

// --- the driver: callable by our declarations ----------------------------------------------------

// F(name of the table, HIP's function)
#define RIDGE_HIP_FUNCTIONS(F)                                   \
  F(Init, hipInit)                                               \
  F(DriverGetVersion, hipDriverGetVersion)                       \
  F(DeviceGetCount, hipGetDeviceCount)                           \
  F(DeviceGet, hipDeviceGet)                                     \
  F(DeviceGetName, hipDeviceGetName)                             \
  F(DeviceGetUuid, hipDeviceGetUuid)                             \
  F(DeviceTotalMem, hipDeviceTotalMem)                           \
  F(DeviceGetAttribute, hipDeviceGetAttribute)                   \
  F(DevicePrimaryCtxRetain, hipDevicePrimaryCtxRetain)           \
  F(DevicePrimaryCtxRelease, hipDevicePrimaryCtxRelease)         \
  F(CtxSynchronize, hipDeviceSynchronize)                        \
  F(CtxGetStreamPriorityRange, hipDeviceGetStreamPriorityRange)  \
  F(MemGetInfo, hipMemGetInfo)                                   \
  F(MemGetAllocationGranularity, hipMemGetAllocationGranularity) \
  F(MemAddressReserve, hipMemAddressReserve)                     \
  F(MemAddressFree, hipMemAddressFree)                           \
  F(MemCreate, hipMemCreate)                                     \
  F(MemRelease, hipMemRelease)                                   \
  F(MemMap, hipMemMap)                                           \
  F(MemUnmap, hipMemUnmap)                                       \
  F(MemSetAccess, hipMemSetAccess)                               \
  F(MemFreeHost, hipHostFree)                                    \
  F(MemFree, hipFree)                                            \
  F(MemcpyHtoDAsync, hipMemcpyHtoDAsync)                         \
  F(MemcpyDtoHAsync, hipMemcpyDtoHAsync)                         \
  F(MemsetD8Async, hipMemsetD8Async)                             \
  F(StreamCreateWithPriority, hipStreamCreateWithPriority)       \
  F(StreamDestroy, hipStreamDestroy)                             \
  F(StreamSynchronize, hipStreamSynchronize)                     \
  F(StreamWaitEvent, hipStreamWaitEvent)                         \
  F(StreamBeginCapture, hipStreamBeginCapture)                   \
  F(StreamEndCapture, hipStreamEndCapture)                       \
  F(GraphInstantiate, hipGraphInstantiateWithFlags)              \
  F(GraphLaunch, hipGraphLaunch)                                 \
  F(GraphExecDestroy, hipGraphExecDestroy)                       \
  F(GraphDestroy, hipGraphDestroy)                               \
  F(EventCreate, hipEventCreateWithFlags)                        \
  F(EventDestroy, hipEventDestroy)                               \
  F(EventRecord, hipEventRecord)                                 \
  F(EventElapsedTime, hipEventElapsedTime)                       \
  F(ModuleLoadData, hipModuleLoadData)                           \
  F(ModuleUnload, hipModuleUnload)                               \
  F(ModuleGetFunction, hipModuleGetFunction)                     \
  F(LaunchKernel, hipModuleLaunchKernel)

#define RIDGE_TEST_HIP(name, function) \
  static_assert(kSameCall<decltype(DriverTable::name), decltype(&::function)>, #function);
RIDGE_HIP_FUNCTIONS(RIDGE_TEST_HIP)

// --- the driver: other shapes --------------------------------------------------------------------

using ErrorNameOfHip = const char* (*)(hipError_t);  // returns the name
static_assert(std::is_same_v<decltype(&::hipGetErrorName), ErrorNameOfHip>);
// C++ overloads stand beside these.
using MallocOfHip = hipError_t (*)(void**, size_t);
using HostMallocOfHip = hipError_t (*)(void**, size_t, unsigned int);
[[maybe_unused]] constexpr MallocOfHip kMalloc = &::hipMalloc;
[[maybe_unused]] constexpr HostMallocOfHip kHostMalloc = &::hipHostMalloc;
static_assert(kSameCall<decltype(DriverTable::MemAlloc), MallocOfHip>);
static_assert(kSameCall<decltype(DriverTable::MemHostAlloc), HostMallocOfHip>);
// The direction is an argument, of which hipMemcpyDefault tells it by the addresses.
static_assert(
    std::is_same_v<decltype(&::hipMemcpyAsync),
                   hipError_t (*)(void*, const void*, size_t, hipMemcpyKind, hipStream_t)>);
// Edges have no data.
static_assert(kSameCall<DriverCode (*)(StreamHandle, int*, uint64_t*, GraphHandle*,
                                       const GraphNodeHandle**, size_t*),
                        decltype(&::hipStreamGetCaptureInfo_v2)>);
static_assert(kSameCall<DriverCode (*)(StreamHandle, GraphNodeHandle*, size_t, unsigned int),
                        decltype(&::hipStreamUpdateCaptureDependencies)>);
// HIP's current device stands for a context, by its number.
static_assert(std::is_same_v<decltype(&::hipSetDevice), hipError_t (*)(int)>);

// --- the compiler: NVRTC's functions, of which a code object comes back
// -------------------------------

static_assert(
    std::is_same_v<decltype(&::hiprtcGetCodeSize), hiprtcResult (*)(hiprtcProgram, size_t*)>);
static_assert(std::is_same_v<decltype(&::hiprtcGetCode), hiprtcResult (*)(hiprtcProgram, char*)>);

// --- structs and values --------------------------------------------------------------------------

static_assert(sizeof(MemLocation) == sizeof(hipMemLocation));
static_assert(sizeof(MemAccessDesc) == sizeof(hipMemAccessDesc));
#if HIP_VERSION_MAJOR == 5  // a struct of its own: it has no type of shared handles
static_assert(offsetof(hipMemAllocationProp, location) == sizeof(int));
#endif
static_assert(sizeof(Uuid) == sizeof(hipUUID));
static_assert(kLocationDevice == hipMemLocationTypeDevice);
static_assert(kAccessReadWrite == hipMemAccessFlagsProtReadWrite);
static_assert(kCaptureRelaxed == hipStreamCaptureModeRelaxed);
static_assert(kStreamNonBlocking == hipStreamNonBlocking);
static_assert(static_cast<int>(DriverCode::kOutOfMemory) == hipErrorOutOfMemory);
static_assert(static_cast<int>(DriverCode::kNoDevice) == hipErrorNoDevice);
static_assert(static_cast<int>(DriverCode::kIllegalAddress) == hipErrorIllegalAddress);
static_assert(static_cast<int>(DriverCode::kLaunchFailed) == hipErrorLaunchFailure);

TEST(Hip, HasWhatTheDriverTableCalls) {
  int here = 0, mapped = 0;
#define RIDGE_TEST_COUNT(...) ++here;
  RIDGE_CUDA_FUNCTIONS(RIDGE_TEST_COUNT)
#undef RIDGE_TEST_COUNT
#define RIDGE_TEST_COUNT(...) ++mapped;
  RIDGE_HIP_FUNCTIONS(RIDGE_TEST_COUNT)
#undef RIDGE_TEST_COUNT
  // Above: GetErrorName, MemAlloc, MemHostAlloc, MemcpyAsync, CtxSetCurrent, StreamGetCaptureInfo
  // and StreamUpdateCaptureDependencies.
  EXPECT_EQ(here, mapped + 7);
}

}  // namespace
}  // namespace ridge::cuda
