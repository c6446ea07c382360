// RunAllSteps: every step of a program, before the run needs it.
//
// A driver loads a kernel's code when it is launched first, and takes memory for a recorded step:
// afterwards a run of the program takes no more of the device.
#pragma once
#include "ridge/core/device_bytes.h"
#include "ridge/runtime/executor.h"
#include "ridge/train/job/job.h"

namespace ridge {

// Runs each step plainly, and where the device records for each input slot as a record, on initial
// values and inputs of 0; a loss that is not finite says nothing.  Sets `kernels` and `graphs` of
// `use`.  Variables are undefined afterwards.
Status RunAllSteps(Executor& executor, const PlannedJob& job, DeviceReadings& use);

// Where the device records: runs each step for each input slot as a record.  Sets `graphs`.
// REQUIRES: RunAllSteps().
Status RecordAllSteps(Executor& executor, DeviceReadings& use);

}  // namespace ridge
