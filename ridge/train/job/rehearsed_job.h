// RehearseJob: replaces a planned job's times and bytes by measurements on this machine.
//
// `ridge plan`, `ridge train` and `ridge bench step` all call it, so their plans agree.
#pragma once
#include <memory>

#include "ridge/runtime/executor.h"
#include "ridge/train/job/job.h"

namespace ridge {

struct RehearsalOptions {
  double kernels_s = 0.1;  // budget for timing kernels; 0: neither kernels nor updates
  double updates_s = 0.3;  // budget for whole updates; needs data
  bool will_run = false;   // the job runs next: all threads make its memory resident now
  // Bytes that the run allocates later: metrics, checkpoints being written.  The plan's report,
  // which grows with its nodes, is added when there is data.
  int64_t still_to_come_bytes = int64_t{8} << 18;
};

// Creates the executor, times kernels and whole updates, and sets the job's times and memory; moves
// the job's program to the executor.  `data` may be nullptr.  Variables are undefined afterwards.
// REQUIRES: the job fits.
Result<std::unique_ptr<Executor>> RehearseJob(const Machine& machine, const JobData* data,
                                              const RehearsalOptions& options, PlannedJob& job);

}  // namespace ridge
