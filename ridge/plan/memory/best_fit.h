// PlaceBestFit: offsets of many buffers, in a time near linear in their number.
//
// First fit looks at all buffers that live with the one to place, which in a training step are as
// many as there are nodes.  Best fit keeps only the upper outline of what is placed, over time.
// Pure: same buffers, same offsets.
#pragma once
#include <vector>

#include "ridge/plan/memory/offsets.h"

namespace ridge {

// Which of the buffers that fit a gap is taken.
enum class BestFitBy { kLength, kSize, kArea };

Placement PlaceBestFit(const std::vector<Buffer>& buffers, BestFitBy by);

}  // namespace ridge
