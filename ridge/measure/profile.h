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
  bool with_data = false;  // batches of options.data, else one batch in memory
  std::string run;         // folder that holds the model, or empty
  // Rounds of two steps, one with node times and one without.  None: as many as kProfileSeconds
  // allow.
  std::optional<int64_t> steps;
  double rehearse_s = 0.02;
  // Called after the steps, since it allocates memory.  `dtype`: the operand type of products.
  std::function<Result<MachinePeaks>(DType dtype)> measure_peaks;
};

inline constexpr double kProfileSeconds = 5;

// The profile shows the fastest step with node times; with data the median one, since the fastest
// would hide the wait for input.  Its StepPlan belongs to `job`.
struct ProfiledRun {
  std::unique_ptr<BenchJob> job;
  StepProfile profile;
};
Result<ProfiledRun> ProfileRun(const ProfileRequest& request, const Machine& machine);

}  // namespace ridge
