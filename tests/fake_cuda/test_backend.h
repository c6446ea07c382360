// Kernels of the host on CudaDevice.
#pragma once
#include "ridge/backend/backend.h"
#include "tests/fake_cuda/test_driver.h"

namespace ridge::fake_cuda {

// The kernels of `inner`, launched on the streams of the fake driver.  A kernel that fails is an
// error that stays.  All of them outlive it.
std::unique_ptr<Backend> MakeCudaBackend(Backend& inner, const FakeGpu& gpu);

}  // namespace ridge::fake_cuda
