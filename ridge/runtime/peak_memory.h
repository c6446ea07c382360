// What a plan's peak is compared with.
#pragma once
#include <cstdint>

#include "ridge/backend/device.h"

namespace ridge {

// The largest resident set of this process; for a memory of the device's own the bytes of it in use
// now, which never shrink during a run.
int64_t MeasuredPeakBytes(Device& device);

}  // namespace ridge
