// Gives the values of a StepPlan their bytes: sharing, live ranges, offsets.
#pragma once
#include "ridge/plan/program.h"

namespace ridge {

// Lets results overwrite inputs whose last reader is the node, where the kernel allows it.
void ShareInPlace(const MemorySpace& memory, StepPlan& step);

// Fills live ranges, offsets, scratch_bytes, bound_bytes and peak_node of a step of the program,
// whose persistent region is placed.  Persistent values get the offset of their slot 0.
void PlaceValues(const Program& program, StepPlan& step);

// Offsets of the persistent region, one after the other, the sums of a tree behind the others and
// side by side; sets its size.
void PlacePersistent(Program& program);

}  // namespace ridge
