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

// How many times what the profile says kernels took: the median over those that were timed, each
// key once and weighing what it takes.  1 when none was.
double RehearsedOverProfiled(const std::map<std::string, double>& kernel_s,
                             const DeviceProfile& profile, const Program& program);
// Whether the profile cannot be this machine's: kernels are never faster than it, and are slower
// for other reasons as well.
bool Contradicts(double rehearsed_over_profiled);

// Seconds of every node and step: what was timed; else the profile's, times what kernels of the
// same name took over what it says of them, or all kernels where it is contradicted.
void EstimateTimesBy(const std::map<std::string, double>& kernel_s, const DeviceProfile& profile,
                     Program& program);

}  // namespace ridge
