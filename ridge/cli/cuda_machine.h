// A GPU as the machine that a verb plans for and runs on.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "ridge/backend/cuda/kernel_compiler.h"
#include "ridge/backend/cuda/libraries.h"
#include "ridge/cli/machine.h"

namespace ridge::cli {

// The peak of a profile for products of f32 that are rounded to TF32.
inline constexpr char kTf32Peak[] = "tf32";

// A GPU with its compiler.
struct OpenedGpu {
  std::unique_ptr<cuda::CudaDevice> device;
  cuda::KernelCompiler compiler;
};
// `launch`: --kernel-launch.  Fails with kDevice: no driver, no GPU, no NVRTC.
Result<OpenedGpu> OpenGpu(int ordinal, const std::string& launch = "graph");

// Its counters; nullptr where NVML does not work.  What it does not tell is said, and no failure.
std::unique_ptr<CounterSource> OpenCounters(const cuda::CudaDevice& device, int ordinal,
                                            const std::function<void(const std::string&)>& say);

struct CudaMachineRequest {
  int ordinal = 0;
  DeviceMemory most = {};  // that plans take, with the context
  cuda::LibraryOptions libraries = {};
  std::string launch = "graph";  // --kernel-launch
  bool counters = false;         // for Machine::counters
};

// The GPU's entry in the catalog: "h200-sxm".  REQUIRES: OpenCudaMachine made it.
std::optional<std::string> CatalogIdOf(const OpenedMachine& opened);

// Kernels of the same GPU, whose products of f32 are rounded to TF32.  `opened` outlives them.
// REQUIRES: OpenCudaMachine made it.
Result<std::unique_ptr<Backend>> MakeTf32Backend(const OpenedMachine& opened);

// Opens the driver, the GPU, its compiler and libraries.  What this takes of the GPU counts as the
// runtime of every plan.  Fails as OpenGpu does.
Result<OpenedMachine> OpenCudaMachine(const CudaMachineRequest& request,
                                      const std::function<void(const std::string&)>& say);

}  // namespace ridge::cli
