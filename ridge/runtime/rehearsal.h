// Rehearsal: times a plan's own kernels in its own arena, before the run.
//
// A roofline predicts a convolution of 20 ms well and one of 50 microseconds badly; so small
// kernels are timed for a few milliseconds, and the plan's step time is the sum of the measured
// times.  Kernels that do not fit the time budget keep the roofline's estimate.
#pragma once
#include <map>
#include <string>

#include "ridge/lower/cost_model.h"
#include "ridge/runtime/executor.h"

namespace ridge {

// Seconds by KernelChoice::key.  Overwrites everything in the arena: initialize or restore
// the variables afterwards.  Spends at most about `budget_s` by the estimates of `nominal`; then
// runs one kernel of each name that did not fit, untimed.
Result<std::map<std::string, double>> Rehearse(Executor& executor, const CostModel& nominal,
                                               double budget_s);

// Measured over profiled seconds: the weighted median over the timed kernels, each key once,
// weighted by its seconds.  1 when none was timed.
double RehearsedOverProfiled(const std::map<std::string, double>& kernel_s,
                             const CostModel& profiled, const Program& program);
// Whether the ratio rules the profile out for this machine.  The bound for faster kernels is
// tighter: slower ones have other causes too.
bool Contradicts(double rehearsed_over_profiled);

// Sets the seconds of every node: those of `profiled`, and measured_s of the nodes that were timed.
// The correction of all others is measured over profiled seconds of kernels of the same name, or,
// without such kernels, of all kernels if they contradict the profile.
void EstimateTimesBy(const std::map<std::string, double>& kernel_s, const CostModel& profiled,
                     Program& program);

}  // namespace ridge
