#include "ridge/train/job/step_runner.h"

#include "ridge/core/process.h"

namespace ridge {
namespace {

int BatchStep(const Executor& executor) {
  const int train = executor.StepIndex("train");
  return train >= 0 ? train : executor.StepIndex("micro");
}

}  // namespace

StepRunner::StepRunner(Executor& executor, const PlannedJob& job)
    : executor_(executor),
      scalar_inputs_(executor, job.lr_dtype, job.options.batch),
      batch_(job.options.batch),
      accumulate_(job.options.accumulate),
      data_seed_(job.options.seed),
      classifier_(job.classifier),
      batch_step_(BatchStep(executor)),
      update_step_(executor.StepIndex("update")) {}

Status StepRunner::StartLoader(const JobData& data, const Position& start) {
  LoaderOptions options;
  options.batch = batch_;
  options.seed = data_seed_;
  options.start = start;
  options.workers = data.workers;
  options.bad_records = data.bad_records;
  RIDGE_ASSIGN_OR_RETURN(loader_, BatchLoader::Create(data.train, data.train_spec, options,
                                                      InputSlots(executor_, data.train_spec)));
  return Status();
}

Result<StepRunner::Update> StepRunner::Run(const Scalars& scalars) {
  const double begin = MonotonicSeconds();
  Update update;
  for (int64_t index = 0; index < accumulate_; ++index) {
    update.stopped = hooks_.stop && hooks_.stop();
    if (update.stopped) return update;
    RIDGE_RETURN_IF_ERROR(RunBatch(scalars, index, update));
  }
  if (update_step_ >= 0) {
    scalar_inputs_.Write(/*slot=*/0, scalars.lr, scalars.updates, {scalars.seed, 0});
    RIDGE_RETURN_IF_ERROR(Execute(update_step_, /*slot=*/0));
  }
  update.loss /= static_cast<double>(accumulate_);
  update.seconds = MonotonicSeconds() - begin;
  return update;
}

Status StepRunner::RunBatch(const Scalars& scalars, int64_t index, Update& update) {
  int slot = 0;
  if (loader_ != nullptr) {
    RIDGE_ASSIGN_OR_RETURN(const LoadedBatch batch, loader_->Next());
    RIDGE_CHECK(!batch.end(), "the training data ended");
    update.wait_s += batch.wait_seconds;
    slot = batch.slot;
  }
  scalar_inputs_.Write(slot, scalars.lr, scalars.updates, {scalars.seed, index * batch_});
  RIDGE_RETURN_IF_ERROR(Execute(batch_step_, slot));
  Transfers& transfers = executor_.transfers();
  RIDGE_ASSIGN_OR_RETURN(const double loss, transfers.Scalar(batch_step_, "loss"));
  update.loss += loss;
  if (classifier_) {
    RIDGE_ASSIGN_OR_RETURN(const double correct, transfers.Scalar(batch_step_, "correct"));
    update.correct += correct;
  }
  if (loader_ != nullptr) loader_->Release(slot);
  return Status();
}

Status StepRunner::Execute(int step, int slot) {
  return hooks_.execute ? hooks_.execute(step, slot) : executor_.Run(step, slot);
}

}  // namespace ridge
