#include "ridge/train/job/laps.h"

#include <algorithm>

#include "ridge/core/process.h"
#include "ridge/train/job/scalar_inputs.h"

namespace ridge {
namespace {

constexpr double kLeastFit = 0.15;  // laps per budget: a long one may take 2 s
constexpr int kMostWarmUps = 2, kFewestLaps = 5, kMostLaps = 400;  // where the budget allows
constexpr double kForMore = 1.0 / 3;  // of the budget, for more laps than these
constexpr double kAgree = 0.05;       // laps that differ by more take all of the budget

Result<std::unique_ptr<BatchLoader>> StartLoader(Executor& executor, const PlannedJob& job,
                                                 const JobData& data) {
  LoaderOptions options;
  options.batch = job.options.batch;
  options.seed = job.options.seed;
  return BatchLoader::Create(data.train, data.train_spec, options,
                             InputSlots(executor, data.train_spec));
}

class Laps {
 public:
  Laps(Executor& executor, const PlannedJob& job, BatchLoader& loader)
      : executor_(executor),
        loader_(loader),
        scalars_(executor, job.lr_dtype, job.options.batch),
        accumulate_(job.options.accumulate),
        batch_step_(executor.StepIndex(accumulate_ > 1 ? "micro" : "train")),
        update_step_(executor.StepIndex("update")) {}

  // Seconds of one update.
  Result<double> Run() {
    const double begin = MonotonicSeconds();
    for (int64_t micro = 0; micro < accumulate_; ++micro) {
      RIDGE_ASSIGN_OR_RETURN(const Filled filled, loader_.Next());
      RIDGE_RETURN_IF_ERROR(RunStep(batch_step_, filled.slot));
      loader_.Release(filled.slot);
    }
    if (update_step_ >= 0) RIDGE_RETURN_IF_ERROR(RunStep(update_step_, /*slot=*/0));
    return MonotonicSeconds() - begin;
  }

 private:
  Status RunStep(int step, int slot) {
    scalars_.Write(slot, /*lr=*/0, /*updates=*/0, {});
    return executor_.Run(step, slot);
  }

  Executor& executor_;
  BatchLoader& loader_;
  ScalarInputs scalars_;
  const int64_t accumulate_;
  const int batch_step_, update_step_;
};

// The value at this share of the sorted laps, from below.
double Quantile(std::vector<double> seconds, double share) {
  const auto at = static_cast<int64_t>(share * static_cast<double>(seconds.size() - 1));
  std::nth_element(seconds.begin(), seconds.begin() + at, seconds.end());
  return seconds[static_cast<size_t>(at)];
}

// Whether the middle half of the laps agree.  Where the loader of a large batch waits for a core,
// laps differ by whole time slices of the scheduler.
bool Agree(const std::vector<double>& seconds) {
  return Quantile(seconds, 0.75) <= (1 + kAgree) * Quantile(seconds, 0.25);
}

}  // namespace

Result<double> MeasureLaps(Executor& executor, const PlannedJob& job, const JobData& data,
                           double budget_s) {
  const double planned = UpdateSeconds(executor.program(), job.options.accumulate);
  const double fit = planned > 0 ? budget_s / planned : 0;
  if (fit < kLeastFit) return 1.0;
  const int warm_ups = fit < 2 ? 0 : fit < kMostWarmUps + kFewestLaps ? 1 : kMostWarmUps;
  RIDGE_ASSIGN_OR_RETURN(const std::unique_ptr<BatchLoader> loader,
                         StartLoader(executor, job, data));
  Laps laps(executor, job, *loader);
  std::vector<double> seconds;
  const double begin = MonotonicSeconds();
  for (int lap = 0; lap < warm_ups + kMostLaps; ++lap) {
    const Result<double> one = laps.Run();
    if (!one.ok() && one.status().code() == ErrorCode::kFailed) return 1.0;  // the run reports it
    if (!one.ok()) return one.status();
    if (lap >= warm_ups) seconds.push_back(*one);
    const double spent = MonotonicSeconds() - begin;
    const bool enough = seconds.size() >= kFewestLaps && spent > kForMore * budget_s;
    if (enough && Agree(seconds)) break;
    if (!seconds.empty() && spent + *one > budget_s) break;
  }
  // Of two the shorter: what disturbs a lap makes it longer.
  const double ratio = Quantile(std::move(seconds), 0.5) / planned;
  // Without warm-up the first lap has cold code and caches, so it is slower than later ones.
  return warm_ups == 0 ? std::min(1.0, ratio) : ratio;
}

void ScaleTimes(double factor, Program& program) {
  for (StepPlan& step : program.steps) {
    step.seconds *= factor;
    for (PlannedNode& node : step.nodes) node.seconds *= factor;
  }
}

}  // namespace ridge
