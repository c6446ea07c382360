// What the optimizer updates share.
#pragma once
#include "ridge/graph/op_def.h"

namespace ridge {

// Inputs 0 and 1 are param, float, and grad, of the same type; input `lr` is a float scalar.
Status CheckParamAndGrad(const OpCall& call, size_t lr);

// Every input is read once and every output written once.
Cost OptimizerCost(const OpCall& call, int64_t flops_per_element);

}  // namespace ridge
