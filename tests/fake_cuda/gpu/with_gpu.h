// The first GPU of the driver that is there.  Without one tests are skipped; with RIDGE_CUDA_PATH
// they fail.
#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>

#include "ridge/backend/cuda/cuda_device.h"

namespace ridge::cuda {

class WithGpu : public testing::Test {
 protected:
  void SetUp() override {
    Result<Driver> driver = LoadDriver();
    const bool named = !SearchOfEnvironment().places.empty();
    if (!driver.ok() && !named)
      GTEST_SKIP() << "not on this machine: " << driver.status().message();
    ASSERT_TRUE(driver.ok()) << driver.status().message();
    Result<std::unique_ptr<CudaDevice>> device = CudaDevice::Open(*driver, 0);
    if (!named && !device.ok() &&
        device.status().message().starts_with("the NVIDIA driver shows no GPU"))
      GTEST_SKIP() << "not on this machine: " << device.status().message();
    ASSERT_TRUE(device.ok()) << device.status().message();
    device_ = std::move(*device);
    fmt::print("{} (CUDA {}): {}\n", driver->path, CudaVersionText(driver->version),
               device_->gpu().name);
  }

  std::unique_ptr<CudaDevice> device_;
};

}  // namespace ridge::cuda
