// Laps: a few whole updates before the run, with the input pipeline beside them.
//
// Kernels timed one by one don't see what the loader's thread takes from them, nor what one kernel
// leaves in the caches for the next.  Laps do; the plan's times are scaled to them.
#pragma once
#include "ridge/runtime/executor.h"
#include "ridge/train/job/job.h"

namespace ridge {

// Seconds of one update over the program's estimate of it; 1 when one lap would take more than
// six `budget_s`, or the loss is not finite.  The learning rate is 0, yet states change:
// initialize or restore the variables afterwards.
Result<double> MeasureLaps(Executor& executor, const PlannedJob& job, const JobData& data,
                           double budget_s);

// Multiplies every node's and step's seconds.
void ScaleTimes(double factor, Program& program);

}  // namespace ridge
