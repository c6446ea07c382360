// A library's kernels alone, for checks of operators on the fake driver.
#pragma once
#include "ridge/backend/cuda/kernel_library.h"
#include "tests/fake_cuda/test_driver.h"

namespace ridge::fake_cuda {

// Its copies between row-major and channels-last run on the host.  All of them outlive it.
std::unique_ptr<Backend> MakeLibraryBackend(Backend& reference, cuda::KernelLibrary& library,
                                            const FakeGpu& gpu);

}  // namespace ridge::fake_cuda
