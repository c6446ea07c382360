// The node that copies a value into another layout, or beside itself.
#pragma once
#include "ridge/graph/kernel_query.h"
#include "ridge/plan/program.h"

namespace ridge {

// From `source` to `target`, which have one type; inputs, outputs and turn are the caller's.
PlannedNode ReorderNode(KernelQuery& kernels, const PlannedValue& source,
                        const PlannedValue& target);

}  // namespace ridge
