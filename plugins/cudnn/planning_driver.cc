// A libcuda.so.1 without a GPU, for cudnn_ask alone: cuDNN has more engines where there is a
// driver, compiles kernels of attention and norms when it is asked about them, loads them, and asks
// how many blocks of one fit.
//
// Kernels are not kept: handles are numbers.  A kernel has 128 registers and runs with up to 1,024
// threads, one block a multiprocessor; workspaces follow from extents alone, not from these.
// Functions that planning does not need refuse.
#include <cstddef>

namespace {

constexpr int kSuccess = 0, kNotSupported = 801;
enum Attribute { kMostThreads = 0, kRegisters = 4 };

int SetHandle(void** to) {
  *to = reinterpret_cast<void*>(1);
  return kSuccess;
}

int SetAttribute(int* value, int attribute) {
  *value = attribute == kRegisters ? 128 : attribute == kMostThreads ? 1024 : 0;
  return kSuccess;
}

int SetName(const char** name) {
  *name = "planning_driver";
  return kSuccess;
}

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default"))) int
#define REFUSED(function) \
  EXPORTED function() { return kNotSupported; }

EXPORTED cuDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}
EXPORTED cuGetErrorName(int, const char** name) { return SetName(name); }
EXPORTED cuGetErrorString(int, const char** text) { return SetName(text); }

EXPORTED cuLibraryLoadData(void** library, ...) { return SetHandle(library); }
EXPORTED cuLibraryUnload(void*) { return kSuccess; }
EXPORTED cuLibraryGetModule(void** module, void*) { return SetHandle(module); }
EXPORTED cuLibraryGetKernel(void** kernel, void*, const char*) { return SetHandle(kernel); }
EXPORTED cuLibraryGetKernelCount(unsigned* count, void*) {
  *count = 1;
  return kSuccess;
}
EXPORTED cuLibraryEnumerateKernels(void** kernels, unsigned count, void*) {
  for (unsigned i = 0; i < count; ++i) SetHandle(kernels + i);
  return kSuccess;
}
EXPORTED cuModuleLoadData(void** module, const void*) { return SetHandle(module); }
EXPORTED cuModuleLoadDataEx(void** module, ...) { return SetHandle(module); }
EXPORTED cuModuleUnload(void*) { return kSuccess; }
EXPORTED cuModuleGetFunction(void** function, void*, const char*) { return SetHandle(function); }

EXPORTED cuKernelGetFunction(void** function, void*) { return SetHandle(function); }
EXPORTED cuKernelGetAttribute(int* value, int attribute, void*, int) {
  return SetAttribute(value, attribute);
}
EXPORTED cuKernelSetAttribute(int, int, void*, int) { return kSuccess; }
EXPORTED cuFuncGetAttribute(int* value, int attribute, void*) {
  return SetAttribute(value, attribute);
}
EXPORTED cuFuncSetAttribute(void*, int, int) { return kSuccess; }
EXPORTED cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void*, int, size_t) {
  *blocks = 1;
  return kSuccess;
}

// cuDNN looks for these before it plans.
REFUSED(cuCtxGetCurrent)
REFUSED(cuCtxGetLimit)
REFUSED(cuCtxPopCurrent)
REFUSED(cuCtxPushCurrent)
REFUSED(cuDeviceGet)
REFUSED(cuDeviceGetCount)
REFUSED(cuLaunchCooperativeKernel)
REFUSED(cuLaunchKernel)
REFUSED(cuLaunchKernelEx)
REFUSED(cuLibraryLoadFromFile)
REFUSED(cuLinkAddData)
REFUSED(cuLinkComplete)
REFUSED(cuLinkCreate)
REFUSED(cuLinkDestroy)
REFUSED(cuOccupancyMaxPotentialClusterSize)
REFUSED(cuStreamGetCtx)
