// The CPU that plans are made for: its numbers choose kernels, layouts and slices.
//
// Fixed numbers instead of measured ones: equal plans on all machines of one instruction set.
#pragma once
#include <cstdint>

#include "ridge/core/device_profile.h"
#include "ridge/core/instructions.h"

namespace ridge {

// `threads` typical cores of a server with these instructions.
DeviceProfile NominalProfile(int threads, Instructions vectors);

namespace cpu {
inline constexpr int64_t kCoreCacheBytes = int64_t{1} << 20;   // second level
inline constexpr int64_t kLastCacheBytes = int64_t{16} << 20;  // shared by all cores
}  // namespace cpu

}  // namespace ridge
