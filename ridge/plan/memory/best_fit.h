// PlaceBestFit: offsets of many buffers, in nearly linear time.
//
// First fit visits all buffers whose lives overlap that of the one to place: in a training step as
// many as there are nodes.  Best fit keeps only the skyline of the placed buffers over time.
// Pure: same buffers, same offsets.
#pragma once
#include <vector>

#include "ridge/plan/memory/offsets.h"

namespace ridge {

// Which of the buffers that fit a gap is taken.
enum class BestFitBy { kLength, kSize, kArea };

Placement PlaceBestFit(const std::vector<Buffer>& buffers, BestFitBy by);

}  // namespace ridge
