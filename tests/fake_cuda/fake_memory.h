// Memory of the fake driver.
//
// A reservation is two ranges of pages without access: one that has the device's addresses and
// stays so unless it is the host's memory, and one, "inside", where mapped memory appears for the
// streams.  Behind a mapping there is nothing on either side, as on a GPU.
#pragma once
#include "tests/fake_cuda/fake_state.h"

namespace ridge::fake_cuda {

inline constexpr size_t kGranule = size_t{2} << 20;

DriverCode Reserve(cuda::DevicePtr* at, size_t bytes);
DriverCode Unreserve(cuda::DevicePtr at, size_t bytes);
// Memory of the current GPU, filled with 0xFF, which is NaN.
DriverCode Create(cuda::AllocationHandle* handle, size_t bytes);
// Of the host: nothing of the GPU's is used.
DriverCode CreateOnHost(cuda::AllocationHandle* handle, size_t bytes, bool of_node);
// It lives on while it is mapped.
DriverCode Release(cuda::AllocationHandle handle);
DriverCode Map(cuda::DevicePtr at, size_t bytes, cuda::AllocationHandle handle);
DriverCode Unmap(cuda::DevicePtr at, size_t bytes);
DriverCode AllowAccess(cuda::DevicePtr at, size_t bytes);
// The host follows its addresses from now on.  Fails with kInvalidValue where it is no node's.
DriverCode AllowHostAccess(cuda::DevicePtr at, size_t bytes);
// All of it at once, in whole granules.
DriverCode Allocate(cuda::DevicePtr* at, size_t bytes);
DriverCode Free(cuda::DevicePtr at);

// Where the bytes of a device address are, mapped or not; nullptr where nothing is reserved.
void* Inside(cuda::DevicePtr at);
// The same where all of [at, at + bytes) is mapped with access, else nullptr.
void* Reach(cuda::DevicePtr at, size_t bytes);

}  // namespace ridge::fake_cuda
