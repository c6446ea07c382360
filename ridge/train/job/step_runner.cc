#include "ridge/train/job/step_runner.h"

#include <algorithm>
#include <utility>

#include "ridge/core/process.h"
#include "ridge/graph/batch_axis.h"
#include "ridge/plan/mesh_nodes.h"

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
      forms_(FormsOf(executor, job)),
      update_step_(executor.StepIndex("update")) {
  if (executor.program().pipeline != nullptr && executor.communicator() != nullptr)
    stages_ = std::make_unique<PipelineRunner>(executor);
}

std::vector<StepRunner::Form> StepRunner::FormsOf(const Executor& executor, const PlannedJob& job) {
  std::vector<Form> forms;
  for (const PlanLength& of : job.lengths) forms.push_back({executor.StepIndex(of.step), of.batch});
  if (forms.empty()) forms.push_back({BatchStep(executor), job.options.batch});
  return forms;
}

Result<BatchSpec> InputsOf(const Executor& executor, BatchSpec spec, const Source& train) {
  spec = AsPlanned(executor.program(), std::move(spec));
  const std::vector<PersistentValue>& values = executor.program().persistent;
  const bool any = std::any_of(values.begin(), values.end(), [](const PersistentValue& value) {
    return IsWholeInput(value.name);
  });
  if (!any) return spec;
  RIDGE_ASSIGN_OR_RETURN(const std::vector<FieldMap> maps, MatchFields(spec, train));
  for (size_t i = 0; i < maps.size(); ++i) {
    InputSpec whole = spec.inputs[i];
    whole.name = kWholePrefix + whole.name;
    if (executor.FindPersistent(whole.name) == nullptr) continue;
    whole.field = train.fields()[static_cast<size_t>(maps[i].field)].name;
    whole.whole = true;
    spec.inputs.push_back(std::move(whole));
  }
  return spec;
}

Status StepRunner::StartLoader(const JobData& data, const Position& start) {
  LoaderOptions options;
  options.batch = batch_;
  options.seed = data_seed_;
  options.start = start;
  options.workers = data.workers;
  options.bad_records = data.bad_records;
  options.lengths = data.lengths;
  options.share = SampleShareOf(executor_.program());
  std::vector<BatchSpec> specs = data.length_specs;
  for (BatchSpec& spec : specs) spec = AsPlanned(executor_.program(), std::move(spec));
  RIDGE_ASSIGN_OR_RETURN(BatchSpec whole, InputsOf(executor_, data.train_spec, *data.train));
  specs.push_back(std::move(whole));
  std::vector<BatchForm> forms;
  for (size_t f = 0; f < specs.size(); ++f)
    forms.push_back({specs[f], forms_[f].batch, InputSlots(executor_, specs[f])});
  RIDGE_ASSIGN_OR_RETURN(loader_, BatchLoader::Create(data.train, std::move(forms), options));
  return Status();
}

// Without a loader: to the device, where it stays.
void StepRunner::SendBatch() {
  if (std::exchange(has_batch_, true)) return;
  executor_.transfers().UploadAhead(/*slot=*/0, ScalarInputs::BatchInputs(executor_.program()));
}

Result<StepRunner::Update> StepRunner::Run(const Scalars& scalars) {
  if (loader_ == nullptr) SendBatch();
  const double begin = MonotonicSeconds(), collective_s = executor_.collective_s();
  Update update;
  RIDGE_RETURN_IF_ERROR(stages_ != nullptr ? RunStages(scalars, update)
                                           : RunMicroBatches(scalars, update));
  if (update.stopped) return update;
  update.loss /= static_cast<double>(accumulate_);
  update.seconds = MonotonicSeconds() - begin;
  update.collective_s = executor_.collective_s() - collective_s;
  return update;
}

Status StepRunner::RunMicroBatches(const Scalars& scalars, Update& update) {
  for (int64_t index = 0; index < accumulate_; ++index) {
    update.stopped = hooks_.stop && hooks_.stop();
    if (update.stopped) return Status();
    RIDGE_RETURN_IF_ERROR(RunBatch(scalars, index, update));
  }
  if (update_step_ < 0) return Status();
  scalar_inputs_.Write(/*slot=*/0, scalars.lr, scalars.updates, {scalars.seed, 0});
  return Execute(update_step_, /*slot=*/0);
}

Status StepRunner::RunStages(const Scalars& scalars, Update& update) {
  struct Context {
    const Scalars& scalars;
    Update& update;
    StepRunner& runner;
  } context = {scalars, update, *this};
  // One reference each, which a std::function holds without the heap.
  const PipelineRunner::Hooks hooks = {
      [&context](int step, int slot) { return context.runner.Execute(step, slot); },
      [&context](int micro) {
        return context.runner.TakeBatch(context.scalars, micro, context.update);
      },
      [&context](int slot) {
        if (context.runner.loader_ != nullptr) context.runner.loader_->Release(slot);
      }};
  RIDGE_ASSIGN_OR_RETURN(const PipelineRunner::Results results, stages_->RunMicroBatches(hooks));
  update.loss = results.loss;
  update.correct = results.correct;
  scalar_inputs_.Write(/*slot=*/0, scalars.lr, scalars.updates, {scalars.seed, 0});
  return stages_->RunUpdate(hooks);
}

// The slot that has the batch and its scalars.
Result<int> StepRunner::TakeBatch(const Scalars& scalars, int64_t index, Update& update) {
  int slot = 0;
  update.form = static_cast<int>(forms_.size()) - 1;
  if (loader_ != nullptr) {
    RIDGE_ASSIGN_OR_RETURN(const LoadedBatch batch, loader_->Next());
    RIDGE_CHECK(!batch.end(), "the training data ended");
    update.wait_s += batch.wait_seconds;
    slot = batch.slot;
    update.form = batch.form;
  }
  const Form& form = forms_[static_cast<size_t>(update.form)];
  update.samples += form.batch;
  scalar_inputs_.Write(slot, scalars.lr, scalars.updates,
                       {scalars.seed, index * form.batch, form.batch});
  return slot;
}

Status StepRunner::RunBatch(const Scalars& scalars, int64_t index, Update& update) {
  RIDGE_ASSIGN_OR_RETURN(const int slot, TakeBatch(scalars, index, update));
  const Form& form = forms_[static_cast<size_t>(update.form)];
  RIDGE_RETURN_IF_ERROR(Execute(form.step, slot));
  Transfers& transfers = executor_.transfers();
  update.wait_s += transfers.input_wait_s();
  RIDGE_ASSIGN_OR_RETURN(const double loss, transfers.Scalar(form.step, "loss"));
  update.loss += loss;
  if (classifier_) {
    RIDGE_ASSIGN_OR_RETURN(const double correct, transfers.Scalar(form.step, "correct"));
    update.correct += correct;
  }
  if (loader_ != nullptr) loader_->Release(slot);
  return Status();
}

Status StepRunner::Execute(int step, int slot) {
  return hooks_.execute ? hooks_.execute(step, slot) : executor_.Run(step, slot);
}

}  // namespace ridge
