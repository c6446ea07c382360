#include "tests/fake_cuda/test_backend.h"

#include "tests/fake_device/launched_backend.h"

namespace ridge::fake_cuda {
namespace {

using cuda::DriverCode;
using Work = std::function<Status()>;

DriverCode RunWork(void* argument) {
  try {
    return (*static_cast<Work*>(argument))().ok() ? DriverCode::kSuccess
                                                  : DriverCode::kLaunchFailed;
  } catch (const Bug&) {
    return DriverCode::kLaunchFailed;
  }
}

void FreeWork(void* argument) { delete static_cast<Work*>(argument); }

}  // namespace

std::unique_ptr<Backend> MakeCudaBackend(Backend& inner, const FakeGpu& gpu) {
  const auto launch_on = [&gpu](Stream& stream, const fake::HostLaunch& launch) {
    auto work = std::make_unique<Work>(fake::RunOnHostAddresses(launch, [&](const void* at) {
      return gpu.hooks.inside(reinterpret_cast<cuda::DevicePtr>(at));
    }));
    const auto handle = static_cast<cuda::CudaStream&>(stream).handle();
    return gpu.driver.Check(gpu.hooks.launch(handle, RunWork, work.release(), FreeWork),
                            "cuLaunchKernel");
  };
  return fake::MakeLaunchedBackend(inner, *gpu.device, launch_on);
}

}  // namespace ridge::fake_cuda
