// The GPU that plans are made for: its numbers choose kernels and slices.
#pragma once
#include "ridge/core/device_profile.h"

namespace ridge::cuda {

// An H100 SXM by its data sheet and the shares of it that kernels reach.  Fixed numbers: equal
// plans on all GPUs.
DeviceProfile NominalGpuProfile();

// PCI Express 5 with sixteen lanes, in one direction.
inline constexpr double kNominalLinkBytesPerS = 63e9;

// What each run of a node takes in a CUDA graph: about 10 KB a launch (NVIDIA/cccl, pull request
// 3768), and two launches.
inline constexpr int64_t kRecordedRunBytes = 2 * (int64_t{10} << 10);

}  // namespace ridge::cuda
