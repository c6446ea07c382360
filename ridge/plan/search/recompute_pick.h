// Picks recomputation candidates, best first, until a limit is reached.
#pragma once
#include <vector>

#include "ridge/plan/search/recompute.h"
#include "ridge/plan/search/recompute_facts.h"

namespace ridge {

// By index into `candidates`: whether it is picked.  Without limits.expensive a larger limit picks
// a superset of a smaller one's values.
std::vector<bool> PickRecomputed(const RecomputeFacts& facts,
                                 const std::vector<RematCandidate>& candidates,
                                 const RecomputeLimits& limits);

// What recomputing the picked candidates does to the schedule.
struct RecomputeEffect {
  int64_t freed_bytes = 0;  // of the peak; negative where copies raise it
  double seconds = 0;
};
RecomputeEffect EffectOf(const RecomputeFacts& facts, const std::vector<RematCandidate>& candidates,
                         const std::vector<bool>& picked);

}  // namespace ridge
