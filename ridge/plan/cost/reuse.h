// Cold reads: the roofline of a single node does not know which operands are still in the caches.
#pragma once
#include <vector>

#include "ridge/lower/cost_model.h"
#include "ridge/plan/program.h"

namespace ridge {

// Seconds that one execution of the step takes beyond `node_s`, those of its nodes by `device`,
// because other bytes evicted an operand from `cache_bytes` since it was last touched.  Arithmetic
// that takes longer than the read hides it.
double ColdReadSeconds(const CostModel& device, int64_t cache_bytes, const StepPlan& step,
                       const std::vector<double>& node_s);

}  // namespace ridge
