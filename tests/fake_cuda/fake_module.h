// Modules and kernels of the fake driver: libraries that the fake NVRTC made.
#pragma once
#include <functional>

#include "tests/fake_cuda/fake_state.h"

namespace ridge::fake_cuda {

// `image` begins with kImageMark and its size.  Fails with kInvalidImage for anything else.
inline constexpr char kImageMark[] = "ridge fake cubin ";

DriverCode LoadModule(cuda::ModuleHandle* module, const void* image);
void UnloadModule(cuda::ModuleHandle module);
DriverCode FindFunction(cuda::FunctionHandle* function, cuda::ModuleHandle module,
                        const char* name);
// What a stream runs; the arguments, all of them device addresses, are read before this returns.
// Blocks run one after the other, threads in an order that changes from launch to launch.
std::function<DriverCode(bool skipped)> LaunchOf(cuda::FunctionHandle function, unsigned int blocks,
                                                 unsigned int threads, void** arguments);

}  // namespace ridge::fake_cuda
