// The node that copies a value into another layout, or beside itself.
#pragma once
#include "ridge/lower/kernel_query.h"
#include "ridge/plan/program.h"

namespace ridge {

// REQUIRES: both values have the same type.  The caller sets inputs and outputs.
PlannedNode ReorderNode(KernelQuery& kernels, const PlannedValue& source,
                        const PlannedValue& target);

}  // namespace ridge
