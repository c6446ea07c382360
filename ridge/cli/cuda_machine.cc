#include "ridge/cli/cuda_machine.h"

#include <fmt/format.h>

#include "ridge/backend/cuda/cuda_backend.h"
#include "ridge/backend/cuda/libraries.h"
#include "ridge/backend/cuda/nominal_gpu.h"
#include "ridge/backend/cuda/nvml.h"

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

Result<OpenedGpu> OpenGpu(int ordinal) {
  RIDGE_ASSIGN_OR_RETURN(const cuda::Driver driver, cuda::LoadDriver());
  RIDGE_RETURN_IF_ERROR(driver.Initialize());
  RIDGE_ASSIGN_OR_RETURN(std::unique_ptr<cuda::CudaDevice> device,
                         cuda::CudaDevice::Open(driver, ordinal));
  RIDGE_ASSIGN_OR_RETURN(cuda::KernelCompiler compiler,
                         cuda::KernelCompiler::Open(device->gpu(), cuda::CubinFolder()));
  return OpenedGpu{std::move(device), std::move(compiler)};
}

std::unique_ptr<CounterSource> OpenCounters(const cuda::CudaDevice& device, int ordinal,
                                            const std::function<void(const std::string&)>& say) {
  Result<std::unique_ptr<cuda::Nvml>> nvml = cuda::Nvml::Open(device.gpu().uuid);
  if (!nvml.ok()) {
    say(fmt::format("cuda:{}: no counters of load, power and heat: {}", ordinal,
                    nvml.status().message()));
    return nullptr;
  }
  const std::string untold = cuda::UntoldCounters((*nvml)->Read());
  if (!untold.empty()) say(fmt::format("cuda:{}: NVML does not tell its {}", ordinal, untold));
  return std::move(*nvml);
}

Result<OpenedMachine> OpenCudaMachine(const CudaMachineRequest& request,
                                      const std::function<void(const std::string&)>& say) {
  const int ordinal = request.ordinal;
  RIDGE_ASSIGN_OR_RETURN(OpenedGpu gpu, OpenGpu(ordinal));
  std::unique_ptr<cuda::CudaDevice>& device = gpu.device;
  say(fmt::format("cuda:{} {}: kernels are compiled by NVRTC {} when they are met first", ordinal,
                  device->gpu().name, gpu.compiler.nvrtc().version()));
  // What they take of the GPU is held by the runtime.
  cuda::KernelLibraries libraries =
      cuda::OpenLibraries(*device, cuda::SearchForToolkit(), say, request.libraries);
  OpenedMachine opened;
  if (request.counters) opened.counters = OpenCounters(*device, ordinal, say);
  RIDGE_ASSIGN_OR_RETURN(const int64_t free, device->FreeBytes());
  const int64_t held = device->gpu().memory_bytes - free;
  opened.machine.counters = opened.counters.get();
  opened.machine.profile = ProfileOf(*device, held);
  opened.machine.memory_bytes = LimitBytes(request.most, held, free);
  opened.backend = cuda::MakeCudaBackend(*device, std::move(gpu.compiler), std::move(libraries));
  opened.device = std::move(device);
  opened.machine.backend = opened.backend.get();
  return opened;
}

}  // namespace ridge::cli
