// Some of the values that could be computed again: best first, until a limit is reached.
#pragma once
#include <vector>

#include "ridge/plan/memory/recompute.h"
#include "ridge/plan/memory/recompute_facts.h"

namespace ridge {

// By place in `candidates`: whether it is taken.  What a larger limit takes begins with what a
// smaller one does.
std::vector<bool> PickRecomputed(const RecomputeFacts& facts, const std::vector<Again>& candidates,
                                 const RecomputeLimits& limits);

}  // namespace ridge
