// The entry points: each begins with the errors that it was told to give.  What gives something
// back does so even when it fails, so that a failure there leaves nothing alive.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "tests/fake_cuda/fake_hooks.h"
#include "tests/fake_cuda/fake_memory.h"
#include "tests/fake_cuda/fake_module.h"
#include "tests/fake_cuda/fake_stream.h"

namespace ridge::fake_cuda {
namespace {

using namespace cuda;

constexpr DriverCode kOk = DriverCode::kSuccess;

Stream& In(StreamHandle stream) { return *reinterpret_cast<Stream*>(stream); }
Event& In(EventHandle event) { return *reinterpret_cast<Event*>(event); }

// A visible GPU; nullptr for a number that is none.
Gpu* GpuOf(int ordinal) {
  std::vector<Gpu>& gpus = TheState().gpus;
  const auto index = static_cast<size_t>(ordinal);
  return ordinal >= 0 && index < gpus.size() ? &gpus[index] : nullptr;
}

// Those of an H200, with 4 multiprocessors.
int PartOf(DeviceAttribute attribute) {
  using enum DeviceAttribute;
  static const std::map<DeviceAttribute, int> kParts = {{kMostThreadsOfBlock, 1024},
                                                        {kMostBlockX, 1024},
                                                        {kMostBlockY, 1024},
                                                        {kMostBlockZ, 64},
                                                        {kMostGridX, 2147483647},
                                                        {kMostGridY, 65535},
                                                        {kMostGridZ, 65535},
                                                        {kSharedBytesOfBlock, 49152},
                                                        {kWarpThreads, 32},
                                                        {kRegistersOfBlock, 65536},
                                                        {kClockKhz, 1980000},
                                                        {kMultiprocessors, 4},
                                                        {kMemoryClockKhz, 3201000},
                                                        {kL2Bytes, 62914560},
                                                        {kMostThreads, 2048},
                                                        {kMajor, 9},
                                                        {kRegisters, 65536},
                                                        {kCooperativeLaunch, 1},
                                                        {kMostSharedBytesOfBlock, 232448},
                                                        {kMostBlocks, 32},
                                                        {kReservedSharedBytesOfBlock, 1024}};
  const auto part = kParts.find(attribute);
  return part == kParts.end() ? 0 : part->second;
}

// Of a graph that may be launched; it takes memory from the first launch on.
struct GraphExec {
  Graph work;
  std::mt19937 draw;
  Gpu* gpu = nullptr;  // of the first launch
  uint64_t bytes = 0;

  void TakeBytes() {
    if (gpu != nullptr) return;
    const std::lock_guard hold(TheState().memory_lock);
    gpu = CurrentGpu();
    bytes = TheState().settings().work_bytes * work.size();
    gpu->graphs += bytes;
  }
  void GiveBytes() {
    const std::lock_guard hold(TheState().memory_lock);
    if (gpu != nullptr) gpu->graphs -= bytes;
  }
};

// The errors of an entry point that gives something back.
DriverCode End(const char* function) { return TheState().Begin(function); }

DriverCode CopyOn(StreamHandle stream, DevicePtr to, DevicePtr from, size_t bytes) {
  In(stream).Push([=](bool skipped) {
    if (skipped) return kOk;
    void* const target = Reach(to, bytes);
    const void* const source = Reach(from, bytes);
    if (target == nullptr || source == nullptr) return DriverCode::kIllegalAddress;
    std::memcpy(target, source, bytes);
    return kOk;
  });
  return kOk;
}

// Work on one range of the device.
template <typename Work>
DriverCode WorkOn(StreamHandle stream, DevicePtr at, size_t bytes, Work work) {
  In(stream).Push([=](bool skipped) {
    if (skipped) return kOk;
    void* const inside = Reach(at, bytes);
    if (inside == nullptr) return DriverCode::kIllegalAddress;
    work(inside);
    return kOk;
  });
  return kOk;
}

}  // namespace

#define RIDGE_FAKE_BEGIN \
  if (const DriverCode code = TheState().Begin(__func__); code != kOk) return code
#define RIDGE_FAKE_IN_CONTEXT \
  if (const DriverCode code = TheState().BeginInContext(__func__); code != kOk) return code

extern "C" {

// --- the driver and its GPUs ---------------------------------------------------------------------

DriverCode cuDriverGetVersion(int* version) {
  TheState().Configure();
  RIDGE_FAKE_BEGIN;
  *version = TheState().settings().version;
  return kOk;
}

DriverCode cuInit(unsigned int) {
  RIDGE_FAKE_BEGIN;
  for (const Gpu& gpu : TheState().gpus) {
    if (gpu.retained > 0) return kOk;  // they are in use
  }
  TheState().TakeGpus();
  return TheState().gpus.empty() ? DriverCode::kNoDevice : kOk;
}

// An error that stays is none of its own.
DriverCode cuGetErrorName(DriverCode code, const char** name) {
  if (const DriverCode own = TheState().Count(__func__); own != kOk) return own;
  static constexpr struct {
    DriverCode code;
    const char* name;
  } kNames[] = {
      {DriverCode::kInvalidValue, "CUDA_ERROR_INVALID_VALUE"},
      {DriverCode::kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY"},
      {DriverCode::kStubLibrary, "CUDA_ERROR_STUB_LIBRARY"},
      {DriverCode::kInvalidDevice, "CUDA_ERROR_INVALID_DEVICE"},
      {DriverCode::kInvalidImage, "CUDA_ERROR_INVALID_IMAGE"},
      {DriverCode::kNotFound, "CUDA_ERROR_NOT_FOUND"},
      {DriverCode::kInvalidContext, "CUDA_ERROR_INVALID_CONTEXT"},
      {DriverCode::kNotReady, "CUDA_ERROR_NOT_READY"},
      {DriverCode::kEccUncorrectable, "CUDA_ERROR_ECC_UNCORRECTABLE"},
      {DriverCode::kIllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS"},
      {DriverCode::kLaunchTimeout, "CUDA_ERROR_LAUNCH_TIMEOUT"},
      {DriverCode::kLaunchFailed, "CUDA_ERROR_LAUNCH_FAILED"},
      {DriverCode::kDriverMismatch, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"},
      {DriverCode::kCaptureUnmatched, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED"},
      {DriverCode::kCaptureUnjoined, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED"},
      {DriverCode::kCaptureIsolation, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION"},
      {DriverCode::kUnknown, "CUDA_ERROR_UNKNOWN"},
  };
  for (const auto& known : kNames) {
    if (known.code == code) return *name = known.name, kOk;
  }
  return DriverCode::kInvalidValue;
}

DriverCode cuDeviceGetCount(int* count) {
  RIDGE_FAKE_BEGIN;
  *count = static_cast<int>(TheState().gpus.size());
  return kOk;
}

DriverCode cuDeviceGet(DeviceId* device, int ordinal) {
  RIDGE_FAKE_BEGIN;
  *device = ordinal;
  return GpuOf(ordinal) == nullptr ? DriverCode::kInvalidDevice : kOk;
}

DriverCode cuDeviceGetName(char* name, int bytes, DeviceId device) {
  RIDGE_FAKE_BEGIN;
  const Gpu& gpu = *GpuOf(device);
  const int shown = TheState().settings().alike ? 0 : gpu.number;
  const char* const given = std::getenv("RIDGE_FAKE_CUDA_NAME");
  if (given != nullptr) {
    std::snprintf(name, static_cast<size_t>(bytes), "%s", given);
  } else {
    std::snprintf(name, static_cast<size_t>(bytes), "Test GPU %d%s", shown,
                  gpu.slice ? " MIG 1g" : "");
  }
  return kOk;
}

DriverCode cuDeviceGetUuid_v2(Uuid* uuid, DeviceId device) {
  RIDGE_FAKE_BEGIN;
  *uuid = UuidOf(*GpuOf(device));
  return kOk;
}

DriverCode cuDeviceTotalMem_v2(size_t* bytes, DeviceId device) {
  RIDGE_FAKE_BEGIN;
  *bytes = GpuOf(device)->bytes;
  return kOk;
}

DriverCode cuDeviceGetAttribute(int* value, DeviceAttribute attribute, DeviceId) {
  RIDGE_FAKE_BEGIN;
  const Settings& settings = TheState().settings();
  *value = attribute == DeviceAttribute::kMapsMemory       ? settings.maps_memory
           : attribute == DeviceAttribute::kMapsHostMemory ? settings.maps_host_memory
           : attribute == DeviceAttribute::kMapsHostNode   ? settings.maps_host_node
           : attribute == DeviceAttribute::kHostNumaNode   ? settings.nearest_node
                                                           : PartOf(attribute);
  return kOk;
}

// --- contexts ------------------------------------------------------------------------------------

DriverCode cuDevicePrimaryCtxRetain(ContextHandle* context, DeviceId device) {
  RIDGE_FAKE_BEGIN;
  Gpu& gpu = *GpuOf(device);
  if (gpu.retained++ == 0) gpu.used += gpu.context_bytes = TheState().settings().context_bytes;
  TheState().Born();
  *context = reinterpret_cast<ContextHandle>(&gpu.context);
  return kOk;
}

DriverCode cuDevicePrimaryCtxRelease_v2(DeviceId device) {
  const DriverCode code = End(__func__);
  TheState().Died();
  Gpu& gpu = *GpuOf(device);
  if (--gpu.retained == 0) gpu.used -= gpu.context_bytes;
  return code;
}

// The error that stays with the context that was current is none of this one's.
DriverCode cuCtxSetCurrent(ContextHandle context) {
  if (const DriverCode own = TheState().Count(__func__); own != kOk) return own;
  CurrentGpu() = nullptr;
  for (Gpu& gpu : TheState().gpus) {
    if (reinterpret_cast<ContextHandle>(&gpu.context) == context) CurrentGpu() = &gpu;
  }
  if (CurrentGpu() == nullptr && context != nullptr) return DriverCode::kInvalidContext;
  return TheState().stays(CurrentGpu());
}

DriverCode cuCtxSynchronize() {
  SynchronizeAll();
  RIDGE_FAKE_IN_CONTEXT;
  return kOk;
}

DriverCode cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  RIDGE_FAKE_IN_CONTEXT;
  *least = 0;
  *greatest = -5;
  return kOk;
}

// --- memory --------------------------------------------------------------------------------------

DriverCode cuMemGetInfo_v2(size_t* free, size_t* total) {
  RIDGE_FAKE_IN_CONTEXT;
  const std::lock_guard hold(TheState().memory_lock);
  *total = CurrentGpu()->bytes;
  *free = *total - std::min<uint64_t>(*total, TheState().InUse(*CurrentGpu()));
  return kOk;
}

DriverCode cuMemGetAllocationGranularity(size_t* bytes, const MemAllocationProp* prop, int) {
  RIDGE_FAKE_BEGIN;
  if (prop->type != kAllocationPinned) return DriverCode::kInvalidValue;
  const bool on_device = prop->location.type == kLocationDevice;
  *bytes = on_device ? kGranule : TheState().settings().host_granule;
  return kOk;
}

DriverCode cuMemAddressReserve(DevicePtr* at, size_t bytes, size_t, DevicePtr, unsigned long long) {
  RIDGE_FAKE_IN_CONTEXT;
  return Reserve(at, bytes);
}

DriverCode cuMemAddressFree(DevicePtr at, size_t bytes) {
  const DriverCode code = End(__func__);
  const DriverCode done = Unreserve(at, bytes);
  return code == kOk ? done : code;
}

DriverCode cuMemCreate(AllocationHandle* handle, size_t bytes, const MemAllocationProp* prop,
                       unsigned long long) {
  RIDGE_FAKE_IN_CONTEXT;
  if (prop->type != kAllocationPinned) return DriverCode::kInvalidValue;
  const bool of_node = prop->location.type == kLocationHostNuma;
  if (of_node && prop->location.id == TheState().settings().refused_node)
    return DriverCode::kInvalidDevice;
  if (of_node || prop->location.type == kLocationHost) {
    if (bytes % TheState().settings().host_granule != 0) return DriverCode::kInvalidValue;
    return CreateOnHost(handle, bytes, of_node);
  }
  if (GpuOf(prop->location.id) != CurrentGpu()) return DriverCode::kInvalidValue;
  return Create(handle, bytes);
}

DriverCode cuMemRelease(AllocationHandle handle) {
  const DriverCode code = End(__func__);
  const DriverCode done = Release(handle);
  return code == kOk ? done : code;
}

DriverCode cuMemMap(DevicePtr at, size_t bytes, size_t, AllocationHandle handle,
                    unsigned long long) {
  RIDGE_FAKE_IN_CONTEXT;
  return Map(at, bytes, handle);
}

DriverCode cuMemUnmap(DevicePtr at, size_t bytes) {
  const DriverCode code = End(__func__);
  const DriverCode done = Unmap(at, bytes);
  return code == kOk ? done : code;
}

DriverCode cuMemSetAccess(DevicePtr at, size_t bytes, const MemAccessDesc* access, size_t count) {
  RIDGE_FAKE_IN_CONTEXT;
  for (size_t i = 0; i < count; ++i) {
    const MemLocation& location = access[i].location;
    if (access[i].flags != kAccessReadWrite) return DriverCode::kInvalidValue;
    DriverCode code = DriverCode::kInvalidValue;
    if (location.type == kLocationHostNuma) {
      code = AllowHostAccess(at, bytes);
    } else if (GpuOf(location.id) == CurrentGpu()) {
      code = AllowAccess(at, bytes);
    }
    if (code != kOk) return code;
  }
  return kOk;
}

DriverCode cuMemAlloc_v2(DevicePtr* at, size_t bytes) {
  RIDGE_FAKE_IN_CONTEXT;
  return Allocate(at, bytes);
}

DriverCode cuMemFree_v2(DevicePtr at) {
  const DriverCode code = End(__func__);
  const DriverCode done = Free(at);
  return code == kOk ? done : code;
}

DriverCode cuMemHostAlloc(void** at, size_t bytes, unsigned int) {
  RIDGE_FAKE_IN_CONTEXT;
  *at = std::malloc(bytes);
  TheState().Born();
  return kOk;
}

DriverCode cuMemFreeHost(void* at) {
  const DriverCode code = End(__func__);
  std::free(at);
  TheState().Died();
  return code;
}

// --- work ----------------------------------------------------------------------------------------

DriverCode cuMemcpyHtoDAsync_v2(DevicePtr to, const void* from, size_t bytes, StreamHandle stream) {
  RIDGE_FAKE_IN_CONTEXT;
  return WorkOn(stream, to, bytes, [=](void* inside) { std::memcpy(inside, from, bytes); });
}

DriverCode cuMemcpyDtoHAsync_v2(void* to, DevicePtr from, size_t bytes, StreamHandle stream) {
  RIDGE_FAKE_IN_CONTEXT;
  return WorkOn(stream, from, bytes, [=](void* inside) { std::memcpy(to, inside, bytes); });
}

DriverCode cuMemcpyAsync(DevicePtr to, DevicePtr from, size_t bytes, StreamHandle stream) {
  RIDGE_FAKE_IN_CONTEXT;
  return CopyOn(stream, to, from, bytes);
}

DriverCode cuMemsetD8Async(DevicePtr to, unsigned char value, size_t bytes, StreamHandle stream) {
  RIDGE_FAKE_IN_CONTEXT;
  return WorkOn(stream, to, bytes, [=](void* inside) { std::memset(inside, value, bytes); });
}

DriverCode cuStreamCreateWithPriority(StreamHandle* stream, unsigned int, int) {
  RIDGE_FAKE_IN_CONTEXT;
  const auto seed = static_cast<uint32_t>(TheState().Calls("cuStreamCreateWithPriority"));
  *stream = reinterpret_cast<StreamHandle>(new Stream(seed, TheState().settings().lazy));
  TheState().Born();
  return kOk;
}

DriverCode cuStreamDestroy_v2(StreamHandle stream) {
  const DriverCode code = End(__func__);
  delete &In(stream);
  TheState().Died();
  return code;
}

DriverCode cuStreamBeginCapture_v2(StreamHandle stream, int mode) {
  RIDGE_FAKE_IN_CONTEXT;
  if (In(stream).capture() != nullptr) return DriverCode::kInvalidValue;
  In(stream).BeginCapture(/*any_thread=*/mode == kCaptureRelaxed);
  return kOk;
}

DriverCode cuStreamEndCapture(StreamHandle stream, GraphHandle* graph) {
  const DriverCode code = End(__func__);
  *graph = nullptr;
  if (In(stream).capture() == nullptr) return DriverCode::kInvalidValue;
  auto taken = std::make_unique<Graph>();
  if (const DriverCode ended = In(stream).EndCapture(*taken); ended != kOk) return ended;
  *graph = reinterpret_cast<GraphHandle>(taken.release());
  TheState().Born();
  return code;
}

// A node's handle is its place, from 1 on.
DriverCode cuStreamGetCaptureInfo_v3(StreamHandle stream, int* status, uint64_t*, GraphHandle*,
                                     const GraphNodeHandle** nodes, const GraphEdge** edges,
                                     size_t* count) {
  RIDGE_FAKE_IN_CONTEXT;
  if (In(stream).capture() == nullptr) return DriverCode::kInvalidValue;
  thread_local std::vector<GraphNodeHandle> handles;  // until the next call
  handles.clear();
  for (const size_t node : In(stream).behind())
    handles.push_back(reinterpret_cast<GraphNodeHandle>(node + 1));
  *status = 1;  // it captures
  *nodes = handles.data();
  *edges = nullptr;
  *count = handles.size();
  return kOk;
}

DriverCode cuStreamUpdateCaptureDependencies_v2(StreamHandle stream, GraphNodeHandle* nodes,
                                                const GraphEdge*, size_t count,
                                                unsigned int flags) {
  RIDGE_FAKE_IN_CONTEXT;
  if (In(stream).capture() == nullptr || flags != kSetCaptureDependencies)
    return DriverCode::kInvalidValue;
  std::vector<size_t> behind;
  for (size_t i = 0; i < count; ++i) {
    const size_t place = reinterpret_cast<size_t>(nodes[i]);
    if (place == 0 || place > In(stream).capture()->graph.size()) return DriverCode::kInvalidValue;
    if (!TheState().LeavesOutEdge()) behind.push_back(place - 1);
  }
  In(stream).SetBehind(std::move(behind));
  return kOk;
}

DriverCode cuGraphInstantiateWithFlags(GraphExecHandle* exec, GraphHandle graph,
                                       unsigned long long) {
  RIDGE_FAKE_IN_CONTEXT;
  *exec = reinterpret_cast<GraphExecHandle>(
      new GraphExec{*reinterpret_cast<Graph*>(graph), std::mt19937(1)});
  TheState().Born();
  return kOk;
}

DriverCode cuGraphLaunch(GraphExecHandle exec, StreamHandle stream) {
  RIDGE_FAKE_IN_CONTEXT;
  auto& graph = *reinterpret_cast<GraphExec*>(exec);
  graph.TakeBytes();
  for (const size_t node : DrawOrder(graph.work, graph.draw)) In(stream).Push(graph.work[node].run);
  return kOk;
}

DriverCode cuGraphExecDestroy(GraphExecHandle exec) {
  const DriverCode code = End(__func__);
  auto* const graph = reinterpret_cast<GraphExec*>(exec);
  graph->GiveBytes();
  delete graph;
  TheState().Died();
  return code;
}

DriverCode cuGraphDestroy(GraphHandle graph) {
  const DriverCode code = End(__func__);
  delete reinterpret_cast<Graph*>(graph);
  TheState().Died();
  return code;
}

DriverCode cuStreamSynchronize(StreamHandle stream) {
  if (In(stream).capture() != nullptr) {
    In(stream).capture()->valid = false;
    return DriverCode::kCaptureUnsupported;
  }
  In(stream).Synchronize();
  RIDGE_FAKE_IN_CONTEXT;
  return kOk;
}

DriverCode cuStreamWaitEvent(StreamHandle stream, EventHandle event, unsigned int) {
  RIDGE_FAKE_IN_CONTEXT;
  return In(event).WaitOn(In(stream));
}

DriverCode cuEventCreate(EventHandle* event, unsigned int) {
  RIDGE_FAKE_IN_CONTEXT;
  *event = reinterpret_cast<EventHandle>(new Event);
  TheState().Born();
  return kOk;
}

DriverCode cuEventDestroy_v2(EventHandle event) {
  const DriverCode code = End(__func__);
  delete &In(event);
  TheState().Died();
  return code;
}

DriverCode cuEventRecord(EventHandle event, StreamHandle stream) {
  RIDGE_FAKE_IN_CONTEXT;
  In(event).Record(In(stream));
  return kOk;
}

DriverCode cuEventElapsedTime_v2(float* milliseconds, EventHandle begin, EventHandle end) {
  RIDGE_FAKE_BEGIN;
  double from = 0, to = 0;
  if (const DriverCode code = In(begin).Seconds(&from); code != kOk) return code;
  if (const DriverCode code = In(end).Seconds(&to); code != kOk) return code;
  *milliseconds = static_cast<float>((to - from) * 1e3);
  return kOk;
}

// --- kernels -------------------------------------------------------------------------------------

DriverCode cuModuleLoadData(ModuleHandle* module, const void* image) {
  RIDGE_FAKE_IN_CONTEXT;
  return LoadModule(module, image);
}

DriverCode cuModuleUnload(ModuleHandle module) {
  const DriverCode code = End(__func__);
  UnloadModule(module);
  return code;
}

DriverCode cuModuleGetFunction(FunctionHandle* function, ModuleHandle module, const char* name) {
  RIDGE_FAKE_IN_CONTEXT;
  return FindFunction(function, module, name);
}

DriverCode cuLaunchKernel(FunctionHandle function, unsigned int grid_x, unsigned int grid_y,
                          unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                          unsigned int block_z, unsigned int, StreamHandle stream, void** arguments,
                          void**) {
  RIDGE_FAKE_IN_CONTEXT;
  if (grid_x == 0 || grid_y != 1 || grid_z != 1 || block_y != 1 || block_z != 1)
    return DriverCode::kInvalidValue;
  In(stream).Push(LaunchOf(function, grid_x, block_x, arguments));
  return kOk;
}

// --- hooks ---------------------------------------------------------------------------------------

DriverCode ridge_fake_cuda_launch(StreamHandle stream, HostKernel run, void* argument,
                                  FreeArgument free) {
  const std::shared_ptr<void> held(argument, free);
  const DriverCode code = TheState().BeginInContext("cuLaunchKernel");
  if (code != kOk) return code;
  In(stream).Push([=](bool skipped) { return skipped ? kOk : run(held.get()); });
  return kOk;
}

void* ridge_fake_cuda_inside(DevicePtr at) { return Inside(at); }

int64_t ridge_fake_cuda_alive() { return TheState().alive(); }

uint64_t ridge_fake_cuda_used(int number, int* contexts) {
  const std::lock_guard hold(TheState().memory_lock);
  for (const Gpu& gpu : TheState().gpus) {
    if (gpu.number != number || gpu.retained == 0) continue;
    *contexts = gpu.retained;
    return TheState().InUse(gpu);
  }
  *contexts = 0;
  return TheState().settings().others_bytes;
}

int64_t ridge_fake_cuda_calls(const char* function) { return TheState().Calls(function); }

}  // extern "C"

// The fake's functions have the types that the loader takes them for.
#define RIDGE_FAKE_SAME_TYPE(name, symbol, parameters) \
  static_assert(std::is_same_v<decltype(&symbol), decltype(DriverTable::name)>);
RIDGE_CUDA_FUNCTIONS(RIDGE_FAKE_SAME_TYPE)

}  // namespace ridge::fake_cuda
