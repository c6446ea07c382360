#include "ridge/cli/cuda_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "ridge/backend/cuda/cuda_backend.h"
#include "ridge/backend/cuda/gpu_bytes.h"
#include "ridge/backend/cuda/libraries.h"
#include "ridge/backend/cuda/nominal_gpu.h"
#include "ridge/backend/cuda/nvml.h"
#include "ridge/plan/cost/host_link.h"
#include "ridge/plan/hardware/driver_name.h"
#include "ridge/plan/hardware/planned_device.h"
#include "ridge/runtime/profile_store.h"

namespace ridge::cli {
namespace {

constexpr char kProducts[] = "matmul";

struct PublishedGpu {
  DeviceProfile profile;
  double host_link_bytes_per_s = 0;
};

// What is published of the GPU, and of another where nothing is.
PublishedGpu PublishedOf(const cuda::GpuFacts& gpu, bool tf32) {
  PublishedGpu published = {cuda::NominalGpuProfile(), cuda::kNominalLinkBytesPerS};
  const std::optional<Hardware> hardware = HardwareOfDriver(gpu.name, gpu.memory_bytes);
  if (!hardware) return published;
  DeviceUse use;
  use.products = tf32 ? F32Products::kTf32 : F32Products::kExact;
  Result<PlannedHardware> planned = PlanHardware(*hardware, use);
  if (!planned.ok()) return published;
  planned->profile.bytes_per_kernel = published.profile.bytes_per_kernel;
  published.profile = std::move(planned->profile);
  if (planned->host_link_bytes_per_s > 0)
    published.host_link_bytes_per_s = planned->host_link_bytes_per_s;
  return published;
}

// Rates that `ridge bench device` measured: a peak is what products reach.
void TakeMeasuredRates(DeviceProfile measured, DeviceProfile& profile) {
  const double share = profile.efficiency.at(kProducts).front().efficiency;
  for (const auto& [dtype, peak] : measured.peak_flops_per_s)
    profile.peak_flops_per_s[dtype] = peak / share;
  profile.memory = std::move(measured.memory);
  profile.launch_s = measured.launch_s;
  profile.made_at = std::move(measured.made_at);
}

// The name as a part of a file's: "cuda-nvidia-h200".
std::string ProfileIdOf(const cuda::GpuFacts& gpu) {
  std::string id = "cuda-" + gpu.name;
  for (char& c : id) {
    const auto letter = static_cast<unsigned char>(c);
    c = std::isalnum(letter) != 0 ? static_cast<char>(std::tolower(letter)) : '-';
  }
  return id;
}

PublishedGpu KnownOf(const cuda::GpuFacts& gpu, bool tf32) {
  PublishedGpu known = PublishedOf(gpu, tf32);
  DeviceProfile& profile = known.profile;
  profile.id = ProfileIdOf(gpu);
  profile.name = gpu.name;
  Result<DeviceProfile> measured = LoadProfile(profile.id);
  if (!measured.ok()) return known;
  if (measured->host_link_bytes_per_s > 0)
    known.host_link_bytes_per_s = measured->host_link_bytes_per_s / kLinkShare;
  const auto rounded = measured->peak_flops_per_s.extract(kTf32Peak);
  if (tf32 && rounded.empty()) return known;  // nothing was measured of it
  if (tf32) measured->peak_flops_per_s["f32"] = rounded.mapped();
  TakeMeasuredRates(std::move(*measured), profile);
  return known;
}

// "/usr/lib/libcuda.so.580.95.05" of the link libcuda.so.1.
std::string RealPath(const std::string& path) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(path, error);
  return error ? path : real.string();
}

void ListLibraries(cuda::CudaDevice& device, const cuda::KernelCompiler& compiler,
                   const cuda::KernelLibraries& libraries, Machine& machine) {
  const auto add = [&](std::string version, const std::string& path) {
    machine.libraries.push_back(std::move(version));
    machine.library_paths.push_back(RealPath(path));
  };
  const cuda::Driver& driver = device.context().driver();
  add(kDriverLibrary + cuda::CudaVersionText(driver.version), driver.path);
  add("NVRTC " + compiler.nvrtc().version(), compiler.nvrtc().path());
  for (const auto& library : libraries) add(library->version(), library->path());
}

// In use on the whole GPU; `before` this process came, `held` with its context.
int64_t MostInUse(const DeviceMemory& most, int64_t before, int64_t held, int64_t free) {
  if (most.bytes > 0) return std::min(before + most.bytes, held + free);
  return held + static_cast<int64_t>(most.fraction * static_cast<double>(free));
}

}  // namespace

Result<OpenedGpu> OpenGpu(int ordinal, const std::string& launch) {
  RIDGE_ASSIGN_OR_RETURN(const cuda::Driver driver, cuda::LoadDriver());
  RIDGE_RETURN_IF_ERROR(driver.Initialize());
  RIDGE_ASSIGN_OR_RETURN(std::unique_ptr<cuda::CudaDevice> device,
                         cuda::CudaDevice::Open(driver, ordinal, {.records = launch == "graph"}));
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

std::optional<std::string> CatalogIdOf(const OpenedMachine& opened) {
  const cuda::GpuFacts& gpu = static_cast<cuda::CudaDevice&>(*opened.device).gpu();
  const std::optional<Hardware> hardware = HardwareOfDriver(gpu.name, gpu.memory_bytes);
  if (!hardware) return std::nullopt;
  return hardware->id;
}

Result<std::unique_ptr<Backend>> MakeTf32Backend(const OpenedMachine& opened) {
  auto& device = static_cast<cuda::CudaDevice&>(*opened.device);
  RIDGE_ASSIGN_OR_RETURN(cuda::KernelCompiler compiler,
                         cuda::KernelCompiler::Open(device.gpu(), cuda::CubinFolder()));
  RIDGE_ASSIGN_OR_RETURN(cuda::KernelLibraries libraries,
                         cuda::OpenLibraries(device, cuda::SearchForToolkit(),
                                             [](const std::string&) {}, {.tf32 = true}));
  return cuda::MakeCudaBackend(device, std::move(compiler), std::move(libraries), {});
}

Result<OpenedMachine> OpenCudaMachine(const CudaMachineRequest& request,
                                      const std::function<void(const std::string&)>& say) {
  const int ordinal = request.ordinal;
  std::unique_ptr<cuda::GpuBytesLog> bytes = cuda::GpuBytesLog::Begin();
  RIDGE_ASSIGN_OR_RETURN(OpenedGpu gpu, OpenGpu(ordinal, request.launch));
  std::unique_ptr<cuda::CudaDevice>& device = gpu.device;
  const cuda::Nvrtc& nvrtc = gpu.compiler.nvrtc();
  say(fmt::format("cuda:{} {}: kernels are compiled by NVRTC {} ({}) when they are met first",
                  ordinal, device->gpu().name, nvrtc.version(), nvrtc.path()));
  // What they take of the GPU is held by the runtime.
  RIDGE_ASSIGN_OR_RETURN(
      cuda::KernelLibraries libraries,
      cuda::OpenLibraries(*device, cuda::SearchForToolkit(), say, request.libraries));
  OpenedMachine opened;
  ListLibraries(*device, gpu.compiler, libraries, opened.machine);
  if (request.counters) opened.counters = OpenCounters(*device, ordinal, say);
  RIDGE_ASSIGN_OR_RETURN(const int64_t free, device->FreeBytes());
  const int64_t held = device->gpu().memory_bytes - free;
  bytes->ContextIsMade(ordinal, device->gpu().uuid, held);
  opened.machine.counters = opened.counters.get();
  PublishedGpu known = KnownOf(device->gpu(), request.libraries.tf32);
  // Where NVML does not tell what was in use before, a context takes what is published.
  const int64_t context = std::min(held, known.profile.runtime_bytes);
  opened.machine.used_before = bytes->bytes().used.before.value_or(held - context);
  known.profile.runtime_bytes = held;
  opened.machine.profile = std::move(known.profile);
  opened.machine.host_link_bytes_per_s = known.host_link_bytes_per_s;
  opened.machine.memory_bytes = MostInUse(request.most, opened.machine.used_before, held, free);
  if (request.launch == "graph") opened.machine.recorded_run_bytes = cuda::kRecordedRunBytes;
  opened.bytes = std::move(bytes);
  opened.machine.bytes = opened.bytes.get();
  opened.backend = cuda::MakeCudaBackend(*device, std::move(gpu.compiler), std::move(libraries),
                                         {.waits_for_each = request.launch == "sync"});
  opened.device = std::move(device);
  opened.machine.backend = opened.backend.get();
  return opened;
}

}  // namespace ridge::cli
