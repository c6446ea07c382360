// ProfileRun: `ridge profile`: runs training steps with the time of each node.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "ridge/measure/bench_job.h"
#include "ridge/measure/bench_step.h"
#include "ridge/report/profile.h"

namespace ridge {

struct ProfileRequest {
  TrainOptions options;
  bool with_data = false;  // batches come from options.data; else one lies in place
  std::string run;         // folder that holds the model, or empty
  // Rounds of two steps, one with node times and one without.  None: as many as kProfileSeconds
  // allow.
  std::optional<int64_t> steps;
  double rehearse_s = 0.02;
  // Called after the steps, since it needs memory of its own.  dtype: what the step computes in.
  std::function<Result<MachinePeaks>(DType dtype)> measure_peaks;
};

inline constexpr double kProfileSeconds = 5;

// Of the steps with node times the fastest is shown; with data the median one, since a lucky step
// would hide the wait for input.  The profile's StepPlan is `job`'s.
struct ProfiledRun {
  std::unique_ptr<BenchJob> job;
  StepProfile profile;
};
Result<ProfiledRun> ProfileRun(const ProfileRequest& request, const Machine& machine);

}  // namespace ridge
