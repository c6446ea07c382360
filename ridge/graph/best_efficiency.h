// How well a backend computes a call, for choices that are made before layouts are known.
#pragma once
#include "ridge/graph/kernel_query.h"

namespace ridge {

// Of the best kernel that `kernels` offers for row-major inputs; 0 when there is none.
double BestEfficiency(KernelQuery& kernels, const OpDef& op, const OpCall& call);

}  // namespace ridge
