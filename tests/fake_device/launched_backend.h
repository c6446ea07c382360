// Kernels of the host as the kernels of a device: each is launched on a stream with the device's
// addresses, and runs when the stream comes to it.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ridge/backend/backend.h"

namespace ridge::fake {

// Bytes that work touches; begin is a device address, nullptr for an absent input.
struct Touched {
  const void* begin;
  int64_t bytes;
  bool writes;
};

// One launch of a kernel.
struct HostLaunch {
  std::string what;  // the node
  Kernel& kernel;    // outlives the work
  KernelBuffers buffers;
  std::vector<Touched> touched;  // inputs, outputs, workspace
};

// What the stream runs: the kernel on host addresses, which `find` knows for those of the device.
// `launch.buffers` is read before this returns.
std::function<Status()> RunOnHostAddresses(const HostLaunch& launch,
                                           const std::function<void*(const void*)>& find);

using LaunchOn = std::function<Status(Stream& stream, const HostLaunch& launch)>;

// The kernels of `inner` on `device`.  Both outlive it.
std::unique_ptr<Backend> MakeLaunchedBackend(Backend& inner, Device& device, LaunchOn launch_on);

}  // namespace ridge::fake
