// Gives the values of a StepPlan their bytes: sharing, live ranges, offsets.
#pragma once
#include "ridge/plan/program.h"

namespace ridge {

// Lets results overwrite inputs whose last reader is the node, where the kernel allows it.
void ShareInPlace(StepPlan& step);

// Fills live ranges, offsets (relative to `scratch_begin`, the end of the persistent region),
// scratch_bytes, bound_bytes and peak_node.  Persistent values get the offset of their slot 0.
void PlaceValues(const std::vector<PersistentValue>& persistent, int64_t scratch_begin,
                 StepPlan& step);

// Offsets of the persistent region, one after the other; returns its size.
int64_t PlacePersistent(std::vector<PersistentValue>& persistent);

}  // namespace ridge
