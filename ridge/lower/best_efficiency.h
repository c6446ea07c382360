// BestEfficiency rates a backend's kernels for a call before layouts are chosen.
#pragma once
#include "ridge/lower/kernel_query.h"

namespace ridge {

// The efficiency of the best offer for row-major inputs; 0 when there is none.
double BestEfficiency(KernelQuery& kernels, const OpDef& op, const OpCall& call);

}  // namespace ridge
