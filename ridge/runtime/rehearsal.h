// Rehearsal: times the very kernels of a plan in the very arena, before the run.
//
// A roofline knows a convolution of 20 ms well and one of 50 microseconds badly; so small kernels
// are timed for a few milliseconds and the plan's step time is the sum of what was seen.  Kernels
// that would not fit the time budget keep the roofline's estimate.
#pragma once
#include <map>
#include <string>

#include "ridge/runtime/executor.h"

namespace ridge {

// Seconds by KernelChoice::key.  Overwrites everything in the arena: initialize or restore
// the variables afterwards.  Spends about `budget_s` at most, judged by the program's own
// estimates; then runs one kernel of each name that did not fit, untimed.
Result<std::map<std::string, double>> Rehearse(Executor& executor, double budget_s);

// Seconds of every node and step: what was timed; else the profile's, times what kernels of the
// same name took over what it says of them.
void EstimateTimesBy(const std::map<std::string, double>& kernel_s, const DeviceProfile& profile,
                     Program& program);

}  // namespace ridge
