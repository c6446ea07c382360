// Host memory between a device's own memory and the host: an input slot each, and a buffer for
// variables and outputs.
#pragma once
#include <cstdint>

#include "ridge/plan/program.h"

namespace ridge {

inline constexpr int kInputSlots = 2;  // one is filled while a step reads the other
inline constexpr int64_t kStagingPieceBytes = int64_t{1} << 20;

// Row-major, of all slices where it has a part for each.
int64_t OutputBytes(const PlannedValue& output);

// The largest that passes through the buffer at once.
int64_t StagingBufferBytes(const Program& program);

// All of it, in whole pages of the host.
int64_t StagingBytes(const Program& program);

}  // namespace ridge
