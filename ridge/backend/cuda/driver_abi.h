// The CUDA driver's C interface, as far as it is used: types, values and functions.
//
// It stands here so that a build needs no CUDA.  libcuda keeps this ABI: what changes gets a new
// symbol (cuMemGetInfo_v2).  tests/fake_cuda/abi_test.cc compares it with NVIDIA's cuda.h where
// that is installed.
#pragma once
#include <cstddef>
#include <cstdint>

namespace ridge::cuda {

// CUresult.  Only those that the code or its tests tell apart; any other number may come back.
enum class DriverCode : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kStubLibrary = 34,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kEccUncorrectable = 214,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kLaunchTimeout = 702,
  kAssert = 710,
  kHardwareStackError = 714,
  kIllegalInstruction = 715,
  kMisalignedAddress = 716,
  kInvalidAddressSpace = 717,
  kInvalidProgramCounter = 718,
  kLaunchFailed = 719,
  kNotSupported = 801,
  kDriverMismatch = 803,
  kCaptureUnsupported = 900,
  kCaptureInvalidated = 901,
  kCaptureUnmatched = 903,
  kCaptureUnjoined = 904,
  kCaptureIsolation = 905,
  kCaptureWrongThread = 908,
  kUnknown = 999,
};

using DeviceId = int;               // CUdevice
using DevicePtr = uint64_t;         // CUdeviceptr
using AllocationHandle = uint64_t;  // CUmemGenericAllocationHandle
using ContextHandle = struct ContextOpaque*;
using StreamHandle = struct StreamOpaque*;
using EventHandle = struct EventOpaque*;
using ModuleHandle = struct ModuleOpaque*;
using FunctionHandle = struct FunctionOpaque*;
using GraphHandle = struct GraphOpaque*;          // CUgraph
using GraphExecHandle = struct GraphExecOpaque*;  // CUgraphExec
using GraphNodeHandle = struct GraphNodeOpaque*;  // CUgraphNode

// CUdevice_attribute.
enum class DeviceAttribute : int {
  kMostThreadsOfBlock = 1,
  kMostBlockX = 2,
  kMostBlockY = 3,
  kMostBlockZ = 4,
  kMostGridX = 5,
  kMostGridY = 6,
  kMostGridZ = 7,
  kSharedBytesOfBlock = 8,
  kWarpThreads = 10,
  kRegistersOfBlock = 12,
  kClockKhz = 13,  // the highest of the multiprocessors
  kMultiprocessors = 16,
  kPciDevice = 34,
  kTccDriver = 35,
  kMemoryClockKhz = 36,
  kL2Bytes = 38,
  kMostThreads = 39,  // of a multiprocessor
  kMajor = 75,        // of the compute capability
  kMinor = 76,
  kRegisters = 82,  // of a multiprocessor
  kCooperativeLaunch = 95,
  kMostSharedBytesOfBlock = 97,  // for kernels that ask for it
  kMapsMemory = 102,             // virtual memory management
  kMostBlocks = 106,             // of a multiprocessor
  kReservedSharedBytesOfBlock = 111,
  kMapsHostMemory = 145,  // the same of the host's memory
  kMapsHostNode = 141,    // and of that of one of its NUMA nodes
  kHostNumaNode = 134,    // the nearest of the host's; -1: it has none
};

// CUmemLocation and others: the only values that are used.
inline constexpr int kLocationDevice = 1;
inline constexpr int kLocationHost = 2;      // its id is not read
inline constexpr int kLocationHostNuma = 3;  // a node of the host, which may follow its addresses
inline constexpr int kAllocationPinned = 1;
inline constexpr int kAccessReadWrite = 3;
inline constexpr int kGranularityMinimum = 0;
inline constexpr unsigned int kStreamNonBlocking = 1;       // not ordered with the default stream
inline constexpr unsigned int kEventDefault = 0;            // takes times
inline constexpr int kCaptureRelaxed = 2;                   // other threads go on with what they do
inline constexpr unsigned int kSetCaptureDependencies = 1;  // instead of those that there are

struct MemLocation {
  int type;
  int id;
};
struct MemAllocationProp {
  int type;
  int requested_handle_types;
  MemLocation location;
  void* win32_handle_meta_data;
  struct {
    unsigned char compression_type;
    unsigned char gpu_direct_rdma_capable;
    unsigned short usage;
    unsigned char reserved[4];
  } flags;
};
struct MemAccessDesc {
  MemLocation location;
  int flags;
};
// CUgraphEdgeData: when the node behind an edge may begin.  Zeros: behind the end of the first.
struct GraphEdge {
  unsigned char from_port, to_port, type, reserved[5];
};
struct Uuid {
  unsigned char bytes[16];
};

// F(name, symbol, parameters), for each function that is used.
#define RIDGE_CUDA_FUNCTIONS(F)                                                                    \
  F(Init, cuInit, (unsigned int flags))                                                            \
  F(DriverGetVersion, cuDriverGetVersion, (int* version))                                          \
  F(GetErrorName, cuGetErrorName, (DriverCode code, const char** name))                            \
  F(DeviceGetCount, cuDeviceGetCount, (int* count))                                                \
  F(DeviceGet, cuDeviceGet, (DeviceId * device, int ordinal))                                      \
  F(DeviceGetName, cuDeviceGetName, (char* name, int bytes, DeviceId device))                      \
  F(DeviceGetUuid, cuDeviceGetUuid_v2, (Uuid * uuid, DeviceId device))                             \
  F(DeviceTotalMem, cuDeviceTotalMem_v2, (size_t * bytes, DeviceId device))                        \
  F(DeviceGetAttribute, cuDeviceGetAttribute,                                                      \
    (int* value, DeviceAttribute attribute, DeviceId device))                                      \
  F(DevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, (ContextHandle * context, DeviceId device))  \
  F(DevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, (DeviceId device))                      \
  F(CtxSetCurrent, cuCtxSetCurrent, (ContextHandle context))                                       \
  F(CtxSynchronize, cuCtxSynchronize, ())                                                          \
  F(CtxGetStreamPriorityRange, cuCtxGetStreamPriorityRange, (int* least, int* greatest))           \
  F(MemGetInfo, cuMemGetInfo_v2, (size_t * free, size_t * total))                                  \
  F(MemGetAllocationGranularity, cuMemGetAllocationGranularity,                                    \
    (size_t * bytes, const MemAllocationProp* prop, int option))                                   \
  F(MemAddressReserve, cuMemAddressReserve,                                                        \
    (DevicePtr * at, size_t bytes, size_t alignment, DevicePtr hint, unsigned long long flags))    \
  F(MemAddressFree, cuMemAddressFree, (DevicePtr at, size_t bytes))                                \
  F(MemCreate, cuMemCreate,                                                                        \
    (AllocationHandle * handle, size_t bytes, const MemAllocationProp* prop,                       \
     unsigned long long flags))                                                                    \
  F(MemRelease, cuMemRelease, (AllocationHandle handle))                                           \
  F(MemMap, cuMemMap,                                                                              \
    (DevicePtr at, size_t bytes, size_t offset, AllocationHandle handle,                           \
     unsigned long long flags))                                                                    \
  F(MemUnmap, cuMemUnmap, (DevicePtr at, size_t bytes))                                            \
  F(MemSetAccess, cuMemSetAccess,                                                                  \
    (DevicePtr at, size_t bytes, const MemAccessDesc* access, size_t count))                       \
  F(MemAlloc, cuMemAlloc_v2, (DevicePtr * at, size_t bytes))                                       \
  F(MemFree, cuMemFree_v2, (DevicePtr at))                                                         \
  F(MemHostAlloc, cuMemHostAlloc, (void** at, size_t bytes, unsigned int flags))                   \
  F(MemFreeHost, cuMemFreeHost, (void* at))                                                        \
  F(MemcpyHtoDAsync, cuMemcpyHtoDAsync_v2,                                                         \
    (DevicePtr to, const void* from, size_t bytes, StreamHandle stream))                           \
  F(MemcpyDtoHAsync, cuMemcpyDtoHAsync_v2,                                                         \
    (void* to, DevicePtr from, size_t bytes, StreamHandle stream))                                 \
  F(MemcpyAsync, cuMemcpyAsync, (DevicePtr to, DevicePtr from, size_t bytes, StreamHandle stream)) \
  F(MemsetD8Async, cuMemsetD8Async,                                                                \
    (DevicePtr to, unsigned char value, size_t bytes, StreamHandle stream))                        \
  F(StreamCreateWithPriority, cuStreamCreateWithPriority,                                          \
    (StreamHandle * stream, unsigned int flags, int priority))                                     \
  F(StreamDestroy, cuStreamDestroy_v2, (StreamHandle stream))                                      \
  F(StreamSynchronize, cuStreamSynchronize, (StreamHandle stream))                                 \
  F(StreamWaitEvent, cuStreamWaitEvent,                                                            \
    (StreamHandle stream, EventHandle event, unsigned int flags))                                  \
  F(StreamBeginCapture, cuStreamBeginCapture_v2, (StreamHandle stream, int mode))                  \
  F(StreamEndCapture, cuStreamEndCapture, (StreamHandle stream, GraphHandle * graph))              \
  F(StreamGetCaptureInfo, cuStreamGetCaptureInfo_v3,                                               \
    (StreamHandle stream, int* status, uint64_t* id, GraphHandle* graph,                           \
     const GraphNodeHandle** nodes, const GraphEdge** edges, size_t* count))                       \
  F(StreamUpdateCaptureDependencies, cuStreamUpdateCaptureDependencies_v2,                         \
    (StreamHandle stream, GraphNodeHandle * nodes, const GraphEdge* edges, size_t count,           \
     unsigned int flags))                                                                          \
  F(GraphInstantiate, cuGraphInstantiateWithFlags,                                                 \
    (GraphExecHandle * exec, GraphHandle graph, unsigned long long flags))                         \
  F(GraphLaunch, cuGraphLaunch, (GraphExecHandle exec, StreamHandle stream))                       \
  F(GraphExecDestroy, cuGraphExecDestroy, (GraphExecHandle exec))                                  \
  F(GraphDestroy, cuGraphDestroy, (GraphHandle graph))                                             \
  F(EventCreate, cuEventCreate, (EventHandle * event, unsigned int flags))                         \
  F(EventDestroy, cuEventDestroy_v2, (EventHandle event))                                          \
  F(EventRecord, cuEventRecord, (EventHandle event, StreamHandle stream))                          \
  F(EventElapsedTime, cuEventElapsedTime_v2,                                                       \
    (float* milliseconds, EventHandle begin, EventHandle end))                                     \
  F(ModuleLoadData, cuModuleLoadData, (ModuleHandle * module, const void* image))                  \
  F(ModuleUnload, cuModuleUnload, (ModuleHandle module))                                           \
  F(ModuleGetFunction, cuModuleGetFunction,                                                        \
    (FunctionHandle * function, ModuleHandle module, const char* name))                            \
  F(LaunchKernel, cuLaunchKernel,                                                                  \
    (FunctionHandle function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,       \
     unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,  \
     StreamHandle stream, void** arguments, void** extra))

// The functions of a driver that was opened.
struct DriverTable {
#define RIDGE_CUDA_MEMBER(name, symbol, parameters) DriverCode(*name) parameters = nullptr;
  RIDGE_CUDA_FUNCTIONS(RIDGE_CUDA_MEMBER)
#undef RIDGE_CUDA_MEMBER
};

}  // namespace ridge::cuda
