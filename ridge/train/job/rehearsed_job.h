// RehearseJob: from a planned job to one whose times and bytes were looked at on this machine.
//
// `ridge plan`, `ridge train` and `ridge bench step` all come through here, so they promise the
// same.
#pragma once
#include <memory>

#include "ridge/runtime/executor.h"
#include "ridge/train/job/job.h"

namespace ridge {

struct RehearsalOptions {
  double kernels_s = 0.1;  // spent on timing kernels one by one; 0: none, nor laps
  double laps_s = 0.3;     // spent on whole updates; needs data
  bool will_run = false;   // the job runs after this: its memory is taken now, by all threads
  // What the run will hold on top of what it holds by then: metrics, checkpoints being written. The
  // plan's report, which grows with its nodes, is added where there is data.
  int64_t still_to_come_bytes = int64_t{7} << 18;
};

// Creates the executor, times kernels and laps, and renews the job's times and memory; its program
// is the executor's from here on.  `data` may be nullptr.  Variables hold anything afterwards.
// REQUIRES: the job fits.
Result<std::unique_ptr<Executor>> RehearseJob(const Machine& machine, const JobData* data,
                                              const RehearsalOptions& options, PlannedJob& job);

}  // namespace ridge
