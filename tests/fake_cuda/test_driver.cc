#include "tests/fake_cuda/test_driver.h"

#include <dlfcn.h>

#include <numeric>

namespace ridge::fake_cuda {
namespace {

template <typename Function>
void Find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  RIDGE_CHECK(function != nullptr, name);
}

template <typename T>
T Must(Result<T> result) {
  RIDGE_CHECK(result.ok(), result.status().message());
  return std::move(*result);
}

}  // namespace

Variables::Variables(Settings values) : values_(std::move(values)) {
  for (const auto& [name, value] : values_) {
    const char* before = std::getenv(name.c_str());
    if (before != nullptr) before_[name] = before;
    ::setenv(name.c_str(), value.c_str(), 1);
  }
}

Variables::~Variables() {
  for (const auto& [name, value] : values_) {
    if (before_.count(name) > 0) {
      ::setenv(name.c_str(), before_[name].c_str(), 1);
    } else {
      ::unsetenv(name.c_str());
    }
  }
}

cuda::DriverSearch FakePlace() { return {.places = RIDGE_FAKE_CUDA_FOLDER}; }

Result<cuda::Driver> LoadFake() { return cuda::LoadDriver(FakePlace()); }

Hooks::Hooks(const cuda::Driver& driver) {
  Find(driver.library, "ridge_fake_cuda_launch", launch);
  Find(driver.library, "ridge_fake_cuda_inside", inside);
  Find(driver.library, "ridge_fake_cuda_alive", alive);
  Find(driver.library, "ridge_fake_cuda_calls", calls);
}

FakeGpu::FakeGpu(Settings settings, const cuda::CudaOptions& options)
    : variables(std::move(settings)),
      driver(Must(LoadFake())),
      hooks(driver),
      device(Must(cuda::CudaDevice::Open(driver, 0, options))) {}

std::vector<int64_t> Numbers(int64_t first) {
  std::vector<int64_t> numbers(kCount);
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

std::unique_ptr<Memory> Allocated(cuda::CudaDevice& device, int64_t bytes) {
  Result<std::unique_ptr<Memory>> memory = device.Allocate(bytes);
  EXPECT_TRUE(memory.ok()) << memory.status().message();
  return std::move(*memory);
}

}  // namespace ridge::fake_cuda
