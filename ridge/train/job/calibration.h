// Calibration steps: a few whole updates before the run, with the input pipeline running.
//
// Times of single kernels include neither the load of the loader's thread nor the cache contents
// that a kernel leaves for the next.  Whole updates include both: StepPlan::calibration.
#pragma once
#include "ridge/runtime/executor.h"
#include "ridge/train/job/job.h"

namespace ridge {

// Measured over planned seconds of one update, a StepPlan::calibration; 1 when one update would
// take more than six `budget_s`, or the loss is not finite.  The learning rate is 0, yet states
// change: initialize or restore the variables afterwards.
Result<double> MeasureUpdates(Executor& executor, const PlannedJob& job, const JobData& data,
                              double budget_s);

// Seconds of one update on a device that records steps, where no kernel waits for the host; without
// the input pipeline, on inputs that are 0.  0 where the loss is not finite.  Initialize or restore
// the variables afterwards.  REQUIRES: the device's main stream records, and RunAllSteps() ran; one
// rank.
Result<double> TimeRecordedUpdates(Executor& executor, const PlannedJob& job, double budget_s);

// The same in one lane and in two (Executor::SetLanes); the executor keeps the faster.  What was
// recorded may be gone afterwards: RecordAllSteps().
Result<double> ChooseLanes(Executor& executor, const PlannedJob& job, double budget_s);

}  // namespace ridge
