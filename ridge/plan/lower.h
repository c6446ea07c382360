// Lowering: a graph becomes a StepPlan without offsets.
//
// Visits the nodes in schedule order and picks each one's kernel and operand layouts: the cheapest
// of the backend's offers, reorders included.  Reorders become nodes and are shared by all later
// readers.  Views (reshape) become values that share bytes.
#pragma once
#include "ridge/plan/persistent_region.h"

namespace ridge {

// Fills nodes, values, inputs, outputs.  Values of the persistent region have persistent_index set.
// `persistent` gains the variables, inputs and constants of this graph; equal names share one
// value.
Result<StepPlan> LowerGraph(const NamedGraph& named, KernelQuery& kernels,
                            const PlanOptions& options, PersistentRegion& persistent);

}  // namespace ridge
