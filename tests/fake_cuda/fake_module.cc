#include "tests/fake_cuda/fake_module.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/cuda_text/host_threads.h"
#include "tests/fake_cuda/fake_memory.h"

namespace ridge::fake_cuda {
namespace {

using cuda_text::RunLaunch;
using cuda_text::ThreadOrder;

struct Module;
struct Function {
  Module* module;
  const RidgeHostKernel* kernel;
};
struct Module {
  int file = -1;
  void* library = nullptr;
  const RidgeHostBlock** now = nullptr;
  std::mutex running;  // `now` is of one launch at a time
  Gpu* gpu = nullptr;  // has its code, from the first launch on
  uint64_t bytes = 0;
  std::map<std::string, Function> functions;
};

// The size behind the mark; 0 for what is no image.
size_t BytesOf(const char* image) {
  if (std::strncmp(image, kImageMark, std::strlen(kImageMark)) != 0) return 0;
  return std::strtoull(image + std::strlen(kImageMark), nullptr, 10);
}

// CUDA loads lazily: when a function is launched first.
void LoadCode(Module& module) {
  const std::lock_guard hold(TheState().memory_lock);
  if (module.gpu != nullptr) return;
  module.gpu = CurrentGpu();
  module.bytes = TheState().settings().module_bytes;
  module.gpu->code += module.bytes;
}

// The library in a file of memory alone.  The file stays open, since the loader knows libraries by
// their paths: a module of the same number would be taken for this one.
void* OpenImage(const char* image, int& file) {
  const size_t bytes = BytesOf(image);
  const char* const begin = std::strchr(image, '\n');
  if (bytes == 0 || begin == nullptr) return nullptr;
  file = memfd_create("cubin", MFD_CLOEXEC);
  size_t written = 0;
  while (file >= 0 && written < bytes) {
    const ssize_t now = write(file, begin + 1 + written, bytes - written);
    if (now <= 0) break;
    written += static_cast<size_t>(now);
  }
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
}

}  // namespace

DriverCode LoadModule(cuda::ModuleHandle* handle, const void* image) {
  auto module = std::make_unique<Module>();
  module->library = OpenImage(static_cast<const char*>(image), module->file);
  if (module->library == nullptr) {
    if (module->file >= 0) close(module->file);
    return DriverCode::kInvalidImage;
  }
  module->now = static_cast<const RidgeHostBlock**>(dlsym(module->library, "ridge_block"));
  const auto* kernel = static_cast<const RidgeHostKernel*>(dlsym(module->library, "ridge_kernels"));
  for (; kernel->name != nullptr; ++kernel)
    module->functions[std::strchr(kernel->name, ':') + 1] = {module.get(), kernel};
  *handle = reinterpret_cast<cuda::ModuleHandle>(module.release());
  TheState().Born();
  return DriverCode::kSuccess;
}

void UnloadModule(cuda::ModuleHandle handle) {
  auto* module = reinterpret_cast<Module*>(handle);
  {
    const std::lock_guard hold(TheState().memory_lock);
    if (module->gpu != nullptr) module->gpu->code -= module->bytes;
  }
  dlclose(module->library);
  close(module->file);
  delete module;
  TheState().Died();
}

DriverCode FindFunction(cuda::FunctionHandle* handle, cuda::ModuleHandle module, const char* name) {
  auto& functions = reinterpret_cast<Module*>(module)->functions;
  const auto at = functions.find(name);
  if (at == functions.end()) return DriverCode::kNotFound;
  *handle = reinterpret_cast<cuda::FunctionHandle>(&at->second);
  return DriverCode::kSuccess;
}

std::function<DriverCode(bool skipped)> LaunchOf(cuda::FunctionHandle handle, unsigned int blocks,
                                                 unsigned int threads, void** arguments) {
  const Function& function = *reinterpret_cast<Function*>(handle);
  LoadCode(*function.module);
  std::vector<cuda::DevicePtr> addresses;
  for (int i = 0; i < function.kernel->parameters; ++i)
    addresses.push_back(*static_cast<cuda::DevicePtr*>(arguments[i]));
  const bool backward = TheState().Calls("cuLaunchKernel") % 2 == 0;
  return [&function, addresses, blocks, threads, backward](bool skipped) {
    if (skipped) return DriverCode::kSuccess;
    std::vector<void*> inside;
    for (const cuda::DevicePtr address : addresses) {
      inside.push_back(address == 0 ? nullptr : Reach(address, 0));
      if (address != 0 && inside.back() == nullptr) return DriverCode::kIllegalAddress;
    }
    const std::lock_guard hold(function.module->running);
    const std::string wrong =
        RunLaunch({function.kernel, blocks, threads, inside.data()},
                  backward ? ThreadOrder::kBackward : ThreadOrder::kForward, function.module->now);
    if (wrong.empty()) return DriverCode::kSuccess;
    std::fprintf(stderr, "fake CUDA: %s: %s\n", function.kernel->name, wrong.c_str());
    return DriverCode::kLaunchFailed;
  };
}

}  // namespace ridge::fake_cuda
