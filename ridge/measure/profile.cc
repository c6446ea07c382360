#include "ridge/measure/profile.h"

#include <algorithm>

#include "ridge/core/process.h"
#include "ridge/core/version.h"

namespace ridge {
namespace {

constexpr int64_t kWarmUpSteps = 2;
constexpr int64_t kFewestRounds = 3, kMostRounds = 200;

struct TimedStep {
  StepRunner::Update step;
  std::vector<double> node_s;
};

struct Rounds {
  std::vector<TimedStep> timed;
  double plain_s = 1e30;  // fastest step without node times
};

Result<TimedStep> RunTimed(BenchJob& job) {
  TimedStep timed;
  job.executor().SetTiming(true);
  RIDGE_ASSIGN_OR_RETURN(timed.step, job.RunStep());
  job.executor().SetTiming(false);
  timed.node_s = job.executor().NodeSeconds(job.step_index());
  return timed;
}

bool Enough(const ProfileRequest& request, int64_t rounds, double begin_s) {
  if (request.steps) return rounds >= *request.steps;
  if (rounds < kFewestRounds) return false;
  return rounds >= kMostRounds || MonotonicSeconds() - begin_s > kProfileSeconds;
}

Result<Rounds> RunRounds(const ProfileRequest& request, BenchJob& job) {
  for (int64_t i = 0; i < kWarmUpSteps; ++i) RIDGE_RETURN_IF_ERROR(job.RunStep().status());
  Rounds rounds;
  const double begin = MonotonicSeconds();
  while (!Enough(request, static_cast<int64_t>(rounds.timed.size()), begin)) {
    RIDGE_ASSIGN_OR_RETURN(TimedStep timed, RunTimed(job));
    rounds.timed.push_back(std::move(timed));
    RIDGE_ASSIGN_OR_RETURN(const StepRunner::Update plain, job.RunStep());
    rounds.plain_s = std::min(rounds.plain_s, plain.seconds);
  }
  return rounds;
}

const TimedStep& StepToShow(std::vector<TimedStep>& timed, bool has_data) {
  std::stable_sort(timed.begin(), timed.end(), [](const TimedStep& a, const TimedStep& b) {
    return a.step.seconds < b.step.seconds;
  });
  return has_data ? timed[timed.size() / 2] : timed.front();
}

// The rates of this very process instead of the stored ones.
Status MeasureLimits(const ProfileRequest& request, DType dtype, DeviceProfile& limits) {
  if (!request.measure_peaks) return Status();
  RIDGE_ASSIGN_OR_RETURN(const MachinePeaks peaks, request.measure_peaks(dtype));
  if (peaks.flops_per_s == 0) return Status();
  limits.peak_flops_per_s[DTypeName(dtype)] = peaks.flops_per_s;
  if (!limits.memory.empty()) limits.memory.back().bytes_per_s = peaks.bytes_per_s;
  return Status();
}

void Describe(const ProfileRequest& request, const Machine& machine, const BenchJob& job,
              StepMeasurement& measured) {
  const TrainOptions& options = request.options;
  measured.model = options.model;
  measured.optimizer = job.job().facts.has_optimizer ? "own" : options.optimizer.name;
  measured.operands = job.job().operands;
  measured.version = kRidgeVersion;
  measured.batch = options.batch;
  measured.threads = machine.backend->threads();
  measured.parameters = job.job().parameter_count;
  measured.step = &job.plan();
  measured.has_data = request.with_data;
  measured.limits = machine.profile;
}

}  // namespace

Result<ProfiledRun> ProfileRun(const ProfileRequest& request, const Machine& machine) {
  ProfiledRun run;
  RIDGE_ASSIGN_OR_RETURN(
      run.job, BenchJob::Create(request.options, request.run, request.rehearse_s, machine));
  StepMeasurement measured;
  Describe(request, machine, *run.job, measured);
  RIDGE_RETURN_IF_ERROR(measured.has_data ? run.job->StartLoader() : run.job->FillBatch());
  RIDGE_ASSIGN_OR_RETURN(Rounds rounds, RunRounds(request, *run.job));
  const TimedStep& shown = StepToShow(rounds.timed, measured.has_data);
  measured.steps = static_cast<int64_t>(rounds.timed.size());
  measured.step_s = shown.step.seconds;
  measured.input_wait_s = shown.step.wait_s;
  measured.plain_step_s = rounds.plain_s;
  measured.node_s = shown.node_s;
  measured.persistent_bytes = run.job->executor().program().device_persistent_bytes();
  RIDGE_ASSIGN_OR_RETURN(measured.model_flops,
                         TrainingFlops(run.job->forward(), request.options.optimizer));
  RIDGE_RETURN_IF_ERROR(MeasureLimits(request, measured.operands, measured.limits));
  run.profile = AnalyzeStep(std::move(measured));
  return run;
}

}  // namespace ridge
