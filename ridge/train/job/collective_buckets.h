// Buckets: collectives of a step that are sent together, since each alone would be latency.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "ridge/plan/program.h"

namespace ridge {

struct CollectiveBucket {
  std::vector<int> nodes;  // of one operator and axis, in the order of the plan
  int64_t bytes = 0;       // of the larger of operand and result, of all
  int at = 0;              // the node at which it leaves
};

// Of equal collectives that follow each other, up to 25 MB: gathers of variables leave at the first
// of them, all others at the last, and none waits for another where a node between reads its
// result. `takes(node)`: which collectives.
std::vector<CollectiveBucket> BucketCollectives(
    const StepPlan& step, const std::function<bool(const PlannedNode&)>& takes);

}  // namespace ridge
