#include "ridge/train/rehearsed_job.h"

#include "ridge/runtime/rehearsal.h"
#include "ridge/train/laps.h"

namespace ridge {
namespace {

Status TimeKernels(const DeviceProfile& profile, double budget_s, Executor& executor) {
  RIDGE_ASSIGN_OR_RETURN(const auto kernel_s, Rehearse(executor, budget_s));
  EstimateTimesBy(kernel_s, profile, executor.mutable_program());
  return Status();
}

Status TimeLaps(const PlannedJob& job, const JobData& data, double budget_s, Executor& executor) {
  executor.InitializeVariables(job.options.seed);
  RIDGE_ASSIGN_OR_RETURN(const double factor, MeasureLaps(executor, job, data, budget_s));
  ScaleTimes(factor, executor.mutable_program());
  return Status();
}

}  // namespace

Result<std::unique_ptr<Executor>> RehearseJob(const Machine& machine, const JobData* data,
                                              const RehearsalOptions& options, PlannedJob& job) {
  RIDGE_ASSIGN_OR_RETURN(std::unique_ptr<Executor> executor,
                         Executor::Create(std::move(job.program), *machine.backend));
  job.program = {};
  if (options.will_run) executor->TouchArena();
  if (options.kernels_s > 0) {
    RIDGE_RETURN_IF_ERROR(TimeKernels(machine.profile, options.kernels_s, *executor));
    if (data != nullptr) RIDGE_RETURN_IF_ERROR(TimeLaps(job, *data, options.laps_s, *executor));
  }
  const int64_t data_now =
      data == nullptr ? 0 : ResidentBytes({data->train, data->validation, data->test});
  const int64_t runtime = MeasuredRuntimeBytes(*executor, data_now, job.data_bytes);
  EstimateJob(data, runtime + options.still_to_come_bytes, executor->program(), job);
  return executor;
}

}  // namespace ridge
