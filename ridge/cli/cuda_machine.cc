#include "ridge/cli/cuda_machine.h"

#include <fmt/format.h>

#include "ridge/backend/cuda/cuda_backend.h"
#include "ridge/backend/cuda/libraries.h"
#include "ridge/backend/cuda/nominal_gpu.h"

namespace ridge::cli {
namespace {

DeviceProfile ProfileOf(const cuda::CudaDevice& device, int64_t runtime_bytes) {
  DeviceProfile profile = cuda::NominalGpuProfile();
  profile.id = "cuda-" + device.gpu().name;
  profile.name = device.gpu().name;
  profile.runtime_bytes = runtime_bytes;
  return profile;
}

int64_t LimitBytes(const DeviceMemory& most, int64_t held, int64_t free) {
  if (most.bytes > 0) return most.bytes;
  return held + static_cast<int64_t>(most.fraction * static_cast<double>(free));
}

}  // namespace

Result<OpenedMachine> OpenCudaMachine(int ordinal, const DeviceMemory& most,
                                      const cuda::LibraryOptions& options,
                                      const std::function<void(const std::string&)>& say) {
  RIDGE_ASSIGN_OR_RETURN(const cuda::Driver driver, cuda::LoadDriver());
  RIDGE_RETURN_IF_ERROR(driver.Initialize());
  RIDGE_ASSIGN_OR_RETURN(std::unique_ptr<cuda::CudaDevice> device,
                         cuda::CudaDevice::Open(driver, ordinal));
  RIDGE_ASSIGN_OR_RETURN(cuda::KernelCompiler compiler,
                         cuda::KernelCompiler::Open(device->gpu(), cuda::CubinFolder()));
  say(fmt::format("cuda:{} {}: kernels are compiled by NVRTC {} when they are met first", ordinal,
                  device->gpu().name, compiler.nvrtc().version()));
  // What they take of the GPU is held by the runtime.
  cuda::KernelLibraries libraries =
      cuda::OpenLibraries(*device, cuda::SearchForToolkit(), say, options);
  RIDGE_ASSIGN_OR_RETURN(const int64_t free, device->FreeBytes());
  const int64_t held = device->gpu().memory_bytes - free;
  OpenedMachine opened;
  opened.machine.profile = ProfileOf(*device, held);
  opened.machine.memory_bytes = LimitBytes(most, held, free);
  opened.backend = cuda::MakeCudaBackend(*device, std::move(compiler), std::move(libraries));
  opened.device = std::move(device);
  opened.machine.backend = opened.backend.get();
  return opened;
}

}  // namespace ridge::cli
