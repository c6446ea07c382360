#include "ridge/train/loop/evaluation.h"

#include "ridge/core/process.h"
#include "ridge/learn/training_graph.h"
#include "ridge/plan/mesh_nodes.h"
#include "ridge/train/job/scalar_inputs.h"
#include "ridge/train/loop/stop_signal.h"

namespace ridge {

Evaluator::Evaluator(Executor& executor, SourcePtr source, BatchSpec spec,
                     const EvalSubject& subject, int64_t batch, int workers,
                     BadRecordsPtr bad_records, Communicator* communicator)
    : executor_(executor),
      source_(std::move(source)),
      spec_(AsPlanned(executor.program(), std::move(spec))),
      batch_(batch),
      workers_(workers),
      bad_records_(std::move(bad_records)),
      step_(executor.StepIndex("eval")),
      classifier_(step_ >= 0 && executor.HasOutput(step_, "correct_sum")),
      ranks_(communicator),
      share_(SampleShareOf(executor.program())),
      counts_(executor, step_, spec_, subject) {
  RIDGE_CHECK(step_ >= 0, "the program has no step 'eval'");
}

Status Evaluator::Start() {
  if (loader_ != nullptr) return loader_->Restart({});
  LoaderOptions options;
  options.batch = batch_;
  options.workers = workers_;
  options.bad_records = bad_records_;
  options.shuffle = false;
  options.drop_last = false;
  options.epochs = 1;
  options.share = share_;
  RIDGE_ASSIGN_OR_RETURN(
      loader_, BatchLoader::Create(source_, spec_, options, InputSlots(executor_, spec_)));
  return Status();
}

Status Evaluator::Add(const char* output, double& sum) {
  RIDGE_ASSIGN_OR_RETURN(const double number, executor_.transfers().Scalar(step_, output));
  sum += number;
  return Status();
}

Status Evaluator::AddBatch(const LoadedBatch& batch) {
  RIDGE_RETURN_IF_ERROR(executor_.Run(step_, batch.slot));
  RIDGE_RETURN_IF_ERROR(Add("loss_sum", loss_sum_));
  RIDGE_RETURN_IF_ERROR(Add("weight_sum", weight_sum_));
  RIDGE_RETURN_IF_ERROR(
      Add(Has("loss_weight_sum") ? "loss_weight_sum" : "weight_sum", loss_weight_sum_));
  if (classifier_) {
    RIDGE_RETURN_IF_ERROR(Add("correct_sum", correct_sum_));
    RIDGE_RETURN_IF_ERROR(Add(Has("label_sum") ? "label_sum" : "weight_sum", label_sum_));
  }
  const int64_t before = share_ ? share_->OwnedSamples(batch_).first : 0;
  RIDGE_RETURN_IF_ERROR(counts_.Add(batch, batch.batch_index * batch_ + before));
  loader_->Release(batch.slot);
  return Status();
}

Result<std::optional<EvalResult>> Evaluator::Run() {
  const double begin = MonotonicSeconds();
  loss_sum_ = loss_weight_sum_ = correct_sum_ = label_sum_ = weight_sum_ = 0;
  counts_.Clear();
  RIDGE_RETURN_IF_ERROR(Start());
  while (true) {
    RIDGE_ASSIGN_OR_RETURN(const bool stops, ranks_.Any(StopSignal::Requested()));
    if (stops) break;
    RIDGE_ASSIGN_OR_RETURN(const LoadedBatch batch, loader_->Next());
    if (batch.end()) {
      RIDGE_ASSIGN_OR_RETURN(const EvalResult result, Finish(MonotonicSeconds() - begin));
      return {result};
    }
    RIDGE_RETURN_IF_ERROR(AddBatch(batch));
  }
  loader_->Stop();
  return {std::nullopt};
}

Result<EvalResult> Evaluator::Finish(double seconds) {
  loader_->Stop();
  if (!CountsSamples(executor_.program())) counts_.Clear();
  RIDGE_RETURN_IF_ERROR(counts_.Share(ranks_));
  EvalResult result;
  result.samples = source_->size();
  RIDGE_CHECK(static_cast<int64_t>(weight_sum_) == result.samples,
              "an evaluation counted " + std::to_string(weight_sum_) + " samples");
  // All labels may be ignored: loss and accuracy are then 0.
  result.loss = loss_weight_sum_ == 0 ? 0 : loss_sum_ / loss_weight_sum_;
  if (classifier_) result.accuracy = label_sum_ == 0 ? 0 : correct_sum_ / label_sum_;
  result.seconds = seconds;
  result.metrics = counts_.Metrics(result.loss);
  return result_ = result;
}

Result<EvaluationRecord> Evaluator::Record(const std::string& data, int64_t step) const {
  EvaluationRecord record;
  record.data = data;
  record.step = step;
  record.samples = result_.samples;
  record.loss = result_.loss;
  record.accuracy = result_.accuracy;
  record.metrics = result_.metrics;
  RIDGE_RETURN_IF_ERROR(counts_.Describe(*source_, record));
  return record;
}

}  // namespace ridge
