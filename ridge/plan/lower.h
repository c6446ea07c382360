// Lowering: a graph becomes a StepPlan without offsets.
//
// Picks the kernel of each node and the layouts of its operands, one node after the other: the
// cheapest of the backend's offers, counting the reorders it needs.  Reorders become nodes and are
// shared by all later readers.  Views (reshape) become values that share bytes.
#pragma once
#include "ridge/plan/persistent_region.h"

namespace ridge {

// Fills nodes, values, inputs, outputs.  Values of the persistent region have persistent_index set.
// `persistent` grows by the variables, inputs and constants of this graph; those of known names are
// shared.
Result<StepPlan> LowerGraph(const NamedGraph& named, KernelQuery& kernels,
                            const DeviceProfile& profile, const PlanOptions& options,
                            PersistentRegion& persistent);

}  // namespace ridge
