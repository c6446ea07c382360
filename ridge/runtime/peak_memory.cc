#include "ridge/runtime/peak_memory.h"

#include "ridge/core/process.h"

namespace ridge {

int64_t MeasuredPeakBytes(Device& device) {
  if (const std::optional<int64_t> used = device.used_bytes()) return *used;
  return ReadProcessMemory().peak_resident_bytes;
}

}  // namespace ridge
