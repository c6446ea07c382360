// Schedules: the learning rate as a pure function of the number of updates done so far.
//
// One file per schedule; schedule.cc lists them.  `step` is 0 at the first update.  Warm-up comes
// first, and the schedule counts from its end:
//   step < warmup: lr * (step + 1) / warmup
//   else:          lr * factor(step - warmup, total - warmup)
// A resumed run therefore needs only its step.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ridge/core/status.h"

namespace ridge {

struct ScheduleOptions {
  std::string name = "constant";  // constant, step, cosine, ramp
  double lr = 1e-3;
  int64_t warmup_steps = 0;
  int64_t total_steps = 0;  // updates of the whole run
};

struct Schedule {
  std::string name;
  std::string doc;
  // In [0, 1].  REQUIRES: 0 <= step; total >= 1.
  double (*factor)(int64_t step, int64_t total) = nullptr;
};

Schedule ConstantSchedule();
Schedule StepSchedule();
Schedule CosineSchedule();
Schedule RampSchedule();

const std::vector<Schedule>& AllSchedules();
// Fails with kInvalidArgument: an unknown name, lr not positive and finite, a negative warm-up.
Status CheckSchedule(const ScheduleOptions& options);
// REQUIRES: CheckSchedule(options) is ok.
double LearningRate(const ScheduleOptions& options, int64_t step);

}  // namespace ridge
