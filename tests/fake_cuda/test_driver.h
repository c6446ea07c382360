// The fake driver as a test opens it: by the loader that opens the real one.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "ridge/backend/cuda/cuda_device.h"
#include "tests/fake_cuda/fake_hooks.h"

namespace ridge::fake_cuda {

using Settings = std::map<std::string, std::string>;  // of the environment

// Variables of the environment while it lives.
class Variables {
 public:
  explicit Variables(Settings values);
  ~Variables();
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;

 private:
  Settings before_;  // of those that were set
  const Settings values_;
};

cuda::DriverSearch FakePlace();

// Loads it with the settings of the environment.
Result<cuda::Driver> LoadFake();

struct Hooks {
  explicit Hooks(const cuda::Driver& driver);
  LaunchFunction launch;
  InsideFunction inside;
  AliveFunction alive;
  CallsFunction calls;
};

// cuda:0 of a driver with these settings, which must open.
struct FakeGpu {
  explicit FakeGpu(Settings settings = {}, const cuda::CudaOptions& options = {});
  const Variables variables;
  const cuda::Driver driver;
  const Hooks hooks;
  const std::unique_ptr<cuda::CudaDevice> device;
};

// What tests move.
inline constexpr int64_t kCount = 1000, kBytes = kCount * 8;
std::vector<int64_t> Numbers(int64_t first);  // kCount of them

std::unique_ptr<Memory> Allocated(cuda::CudaDevice& device, int64_t bytes);

}  // namespace ridge::fake_cuda
