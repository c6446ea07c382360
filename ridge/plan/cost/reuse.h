// Cold reads: the roofline of a single node does not know which operands are still in the caches.
#pragma once
#include "ridge/core/device_profile.h"
#include "ridge/plan/program.h"

namespace ridge {

// Seconds that one execution of the step takes beyond the sum of its nodes' seconds, because other
// bytes evicted an operand from `cache_bytes` since it was last touched.  Arithmetic that takes
// longer than the read hides it.
// REQUIRES: EstimateTimes(profile) has been called for the step.
double ColdReadSeconds(const DeviceProfile& profile, int64_t cache_bytes, const StepPlan& step);

}  // namespace ridge
