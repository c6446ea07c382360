// What the roofline of single nodes leaves out: where their operands lie when they are read.
#pragma once
#include "ridge/core/device_profile.h"
#include "ridge/plan/program.h"

namespace ridge {

// Seconds by which one execution of the step takes longer than its nodes' seconds say, because an
// operand was last touched so long ago that other bytes have driven it out of `cache_bytes`.
// Arithmetic that takes longer than the reading hides it.
// REQUIRES: EstimateTimes(profile) has been called for the step.
double ColdReadSeconds(const DeviceProfile& profile, int64_t cache_bytes, const StepPlan& step);

}  // namespace ridge
