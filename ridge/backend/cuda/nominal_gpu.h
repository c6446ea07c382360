// The GPU that plans are made for: its numbers choose kernels and slices.
#pragma once
#include "ridge/core/device_profile.h"

namespace ridge::cuda {

// An H100 SXM by its data sheet and the shares of it that kernels reach.  Fixed numbers: equal
// plans on all GPUs.
DeviceProfile NominalGpuProfile();

}  // namespace ridge::cuda
