// What tests ask of the fake driver beyond CUDA's functions; found with dlsym.
#pragma once
#include <cstdint>

#include "ridge/backend/cuda/driver_abi.h"

namespace ridge::fake_cuda {

// Runs on the stream's thread, each time that a graph is launched.  Anything but kSuccess is an
// error that stays, after which it is not called.
using HostKernel = cuda::DriverCode (*)(void* argument);
using FreeArgument = void (*)(void* argument);  // when it is not called any more

// "ridge_fake_cuda_launch"
using LaunchFunction = cuda::DriverCode (*)(cuda::StreamHandle stream, HostKernel run,
                                            void* argument, FreeArgument free);
// "ridge_fake_cuda_inside": where streams find the bytes of a device address; nullptr where nothing
// is reserved.
using InsideFunction = void* (*)(cuda::DevicePtr at);
// "ridge_fake_cuda_alive": contexts, reservations, allocations, mappings, streams, events and host
// memory that are not given back.
using AliveFunction = int64_t (*)();
// "ridge_fake_cuda_used": bytes of the machine's GPU of this number that are in use; sets how often
// its context is retained.
using UsedFunction = uint64_t (*)(int number, int* contexts);
// "ridge_fake_cuda_calls": of this function ("cuMemMap") since the settings were read.
using CallsFunction = int64_t (*)(const char* function);

}  // namespace ridge::fake_cuda
