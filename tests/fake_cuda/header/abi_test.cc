// Our declarations of the driver against NVIDIA's.  Compiled where cuda.h is found.
#include <cuda.h>
#include <gtest/gtest.h>

#include <cstddef>

#include "ridge/backend/cuda/driver_abi.h"
#include "tests/fake_cuda/header/same_shape.h"

namespace ridge::cuda {
namespace {

// --- functions: the same number of parameters, each of the same size and kind --------------------

#define RIDGE_TEST_SHAPE(name, symbol, parameters) \
  static_assert(kSameShape<decltype(DriverTable::name), decltype(&::symbol)>, #symbol);
RIDGE_CUDA_FUNCTIONS(RIDGE_TEST_SHAPE)

static_assert(!kSameShape<int (*)(int), int (*)(long)>);
static_assert(!kSameShape<int (*)(int*), int (*)(long)>);
static_assert(!kSameShape<int (*)(int), int (*)(int, int)>);

// --- structs -------------------------------------------------------------------------------------

static_assert(sizeof(MemAllocationProp) == sizeof(CUmemAllocationProp));
static_assert(offsetof(MemAllocationProp, type) == offsetof(CUmemAllocationProp, type));
static_assert(offsetof(MemAllocationProp, location) == offsetof(CUmemAllocationProp, location));
static_assert(offsetof(MemAllocationProp, flags) == offsetof(CUmemAllocationProp, allocFlags));
static_assert(sizeof(MemAccessDesc) == sizeof(CUmemAccessDesc));
static_assert(offsetof(MemAccessDesc, flags) == offsetof(CUmemAccessDesc, flags));
static_assert(sizeof(MemLocation) == sizeof(CUmemLocation));
static_assert(offsetof(MemLocation, id) == offsetof(CUmemLocation, id));
static_assert(sizeof(Uuid) == sizeof(CUuuid));
static_assert(sizeof(GraphEdge) == sizeof(CUgraphEdgeData));

// --- values --------------------------------------------------------------------------------------

static_assert(kLocationDevice == CU_MEM_LOCATION_TYPE_DEVICE);
static_assert(kLocationHost == CU_MEM_LOCATION_TYPE_HOST);
static_assert(kLocationHostNuma == CU_MEM_LOCATION_TYPE_HOST_NUMA);
static_assert(kAllocationPinned == CU_MEM_ALLOCATION_TYPE_PINNED);
static_assert(kAccessReadWrite == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
static_assert(kGranularityMinimum == CU_MEM_ALLOC_GRANULARITY_MINIMUM);
static_assert(kStreamNonBlocking == CU_STREAM_NON_BLOCKING);
static_assert(kEventDefault == CU_EVENT_DEFAULT);
static_assert(kSetCaptureDependencies == CU_STREAM_SET_CAPTURE_DEPENDENCIES);

constexpr bool Is(DeviceAttribute ours, CUdevice_attribute theirs) {
  return static_cast<int>(ours) == static_cast<int>(theirs);
}
static_assert(Is(DeviceAttribute::kMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
static_assert(Is(DeviceAttribute::kMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
static_assert(Is(DeviceAttribute::kMostThreadsOfBlock, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
static_assert(Is(DeviceAttribute::kMostBlockX, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X));
static_assert(Is(DeviceAttribute::kMostBlockY, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y));
static_assert(Is(DeviceAttribute::kMostBlockZ, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z));
static_assert(Is(DeviceAttribute::kMostGridX, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X));
static_assert(Is(DeviceAttribute::kMostGridY, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y));
static_assert(Is(DeviceAttribute::kMostGridZ, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z));
static_assert(Is(DeviceAttribute::kSharedBytesOfBlock,
                 CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK));
static_assert(Is(DeviceAttribute::kWarpThreads, CU_DEVICE_ATTRIBUTE_WARP_SIZE));
static_assert(Is(DeviceAttribute::kRegistersOfBlock, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK));
static_assert(Is(DeviceAttribute::kClockKhz, CU_DEVICE_ATTRIBUTE_CLOCK_RATE));
static_assert(Is(DeviceAttribute::kMultiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
static_assert(Is(DeviceAttribute::kPciDevice, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID));
static_assert(Is(DeviceAttribute::kTccDriver, CU_DEVICE_ATTRIBUTE_TCC_DRIVER));
static_assert(Is(DeviceAttribute::kMemoryClockKhz, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE));
static_assert(Is(DeviceAttribute::kL2Bytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE));
static_assert(Is(DeviceAttribute::kMostThreads,
                 CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR));
static_assert(Is(DeviceAttribute::kRegisters,
                 CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR));
static_assert(Is(DeviceAttribute::kCooperativeLaunch, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH));
static_assert(Is(DeviceAttribute::kMostSharedBytesOfBlock,
                 CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
static_assert(Is(DeviceAttribute::kMostBlocks, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR));
static_assert(Is(DeviceAttribute::kReservedSharedBytesOfBlock,
                 CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK));
static_assert(Is(DeviceAttribute::kMapsMemory,
                 CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED));
static_assert(Is(DeviceAttribute::kHostNumaNode, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID));
static_assert(Is(DeviceAttribute::kMapsHostNode,
                 CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED));
#if CUDA_VERSION >= 13000
static_assert(Is(DeviceAttribute::kMapsHostMemory,
                 CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED));
#endif

constexpr bool Is(DriverCode ours, CUresult theirs) {
  return static_cast<int>(ours) == static_cast<int>(theirs);
}
static_assert(Is(DriverCode::kSuccess, CUDA_SUCCESS));
static_assert(Is(DriverCode::kInvalidValue, CUDA_ERROR_INVALID_VALUE));
static_assert(Is(DriverCode::kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY));
static_assert(Is(DriverCode::kNotInitialized, CUDA_ERROR_NOT_INITIALIZED));
static_assert(Is(DriverCode::kStubLibrary, CUDA_ERROR_STUB_LIBRARY));
static_assert(Is(DriverCode::kNoDevice, CUDA_ERROR_NO_DEVICE));
static_assert(Is(DriverCode::kInvalidDevice, CUDA_ERROR_INVALID_DEVICE));
static_assert(Is(DriverCode::kInvalidImage, CUDA_ERROR_INVALID_IMAGE));
static_assert(Is(DriverCode::kNotFound, CUDA_ERROR_NOT_FOUND));
static_assert(Is(DriverCode::kInvalidContext, CUDA_ERROR_INVALID_CONTEXT));
static_assert(Is(DriverCode::kEccUncorrectable, CUDA_ERROR_ECC_UNCORRECTABLE));
static_assert(Is(DriverCode::kInvalidHandle, CUDA_ERROR_INVALID_HANDLE));
static_assert(Is(DriverCode::kNotReady, CUDA_ERROR_NOT_READY));
static_assert(Is(DriverCode::kIllegalAddress, CUDA_ERROR_ILLEGAL_ADDRESS));
static_assert(Is(DriverCode::kLaunchTimeout, CUDA_ERROR_LAUNCH_TIMEOUT));
static_assert(Is(DriverCode::kAssert, CUDA_ERROR_ASSERT));
static_assert(Is(DriverCode::kHardwareStackError, CUDA_ERROR_HARDWARE_STACK_ERROR));
static_assert(Is(DriverCode::kIllegalInstruction, CUDA_ERROR_ILLEGAL_INSTRUCTION));
static_assert(Is(DriverCode::kMisalignedAddress, CUDA_ERROR_MISALIGNED_ADDRESS));
static_assert(Is(DriverCode::kInvalidAddressSpace, CUDA_ERROR_INVALID_ADDRESS_SPACE));
static_assert(Is(DriverCode::kInvalidProgramCounter, CUDA_ERROR_INVALID_PC));
static_assert(Is(DriverCode::kLaunchFailed, CUDA_ERROR_LAUNCH_FAILED));
static_assert(Is(DriverCode::kNotSupported, CUDA_ERROR_NOT_SUPPORTED));
static_assert(Is(DriverCode::kDriverMismatch, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH));
static_assert(Is(DriverCode::kUnknown, CUDA_ERROR_UNKNOWN));
static_assert(Is(DriverCode::kCaptureUnsupported, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED));
static_assert(Is(DriverCode::kCaptureInvalidated, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED));
static_assert(Is(DriverCode::kCaptureUnmatched, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED));
static_assert(Is(DriverCode::kCaptureUnjoined, CUDA_ERROR_STREAM_CAPTURE_UNJOINED));
static_assert(Is(DriverCode::kCaptureIsolation, CUDA_ERROR_STREAM_CAPTURE_ISOLATION));
static_assert(Is(DriverCode::kCaptureWrongThread, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD));

// --- symbols -------------------------------------------------------------------------------------

#define RIDGE_TEST_TEXT(x) #x
#define RIDGE_TEST_EXPANDED(x) RIDGE_TEST_TEXT(x)

TEST(CudaHeader, NamesTheSymbolsThatAreResolved) {
#define RIDGE_TEST_SYMBOL(name, symbol, parameters) \
  EXPECT_STREQ(RIDGE_TEST_EXPANDED(cu##name), #symbol);
  RIDGE_CUDA_FUNCTIONS(RIDGE_TEST_SYMBOL)
#undef RIDGE_TEST_SYMBOL
}

}  // namespace
}  // namespace ridge::cuda
