// The GPUs that the driver shows, and the list in CUDA_VISIBLE_DEVICES that restricts them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ridge/backend/cuda/driver.h"

namespace ridge::cuda {

struct GpuFacts {
  std::string name;          // "NVIDIA H200"
  std::string uuid;          // "GPU-6b2f0c4e-...", "MIG-..."
  int major = 0, minor = 0;  // compute capability
  int64_t memory_bytes = 0;
  bool maps_memory = false;       // virtual memory management
  bool maps_host_memory = false;  // the same of the host's memory
  bool maps_host_node = false;    // and of that of a NUMA node, which the host may follow
  int host_numa_node = 0;         // the nearest of the host's
};

// In the order of their ordinals, which follow CUDA_VISIBLE_DEVICES.  Makes no context and takes no
// memory of a GPU.  Fails as Driver::Initialize does, and with the driver's errors.
Result<std::vector<GpuFacts>> ListGpus(const Driver& driver);

// Of a GPU that ListGpus has listed; 0 where the driver does not know the question.
int64_t AttributeOf(const Driver& driver, int ordinal, DeviceAttribute attribute);

// CUDA_VISIBLE_DEVICES as the driver reads it.
struct VisibleDevices {
  enum class Kind { kAll, kNone, kOrdinals, kUuids, kMig };
  Kind kind = Kind::kAll;
  std::vector<std::string> names;  // "0", the begin of a UUID "GPU-6b2f", "MIG-..."
};

// `text`: the variable's value, none where it is not set.  Fails with kDevice for what the driver
// would cut short without a word: a name of no kind, of two kinds, twice, or several MIG instances,
// of which a process uses one.
Result<VisibleDevices> ParseVisibleDevices(const std::optional<std::string>& text);

// Fails with kDevice where the list has more names than the driver shows GPUs: it ends before the
// first that is not there.
Status CheckShown(const VisibleDevices& visible, int64_t shown);

}  // namespace ridge::cuda
