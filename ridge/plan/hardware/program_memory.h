// What another program's training needs, from the plan of ridge.
#pragma once
#include "ridge/plan/hardware/software.h"
#include "ridge/plan/total.h"

namespace ridge {

// `plan`: of a job that computes nothing again, in one slice.  Parameters, optimizer, inputs and
// runtime are the same; all gradients live at once; activations and workspace take the program's
// scale.  REQUIRES: software.memory_scale > 0.
MemoryEstimate MemoryOf(const Software& software, const MemoryEstimate& plan);

// Of a plan of ridge for a GPU that is not here, whose upper end is the plan: at the lower one the
// context is that much smaller, and what has an upper bound as its workspace takes none.
MemoryRange PlannedRange(const Program& program, const MemoryEstimate& plan,
                         int64_t context_spread_bytes);

}  // namespace ridge
