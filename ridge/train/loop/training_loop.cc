// state_ has everything that a checkpoint stores and changes only between updates, so a run can be
// stopped after any update and resumed with the same bits.  Evaluation uses the input slots of
// training, so the loader stops for it and restarts at its position: the order of the samples is a
// formula, so none is skipped.
#include "ridge/train/loop/training_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "ridge/core/process.h"
#include "ridge/dist/rank_doing.h"
#include "ridge/observe/metric_names.h"
#include "ridge/plan/tree_sums.h"
#include "ridge/train/loop/read_loss_scaling.h"
#include "ridge/train/loop/stop_signal.h"

namespace ridge {
namespace {

constexpr int64_t kReportEverySteps = 50;
constexpr double kFirstStep_s = 6;     // given to the first step of a process at least
constexpr int64_t kTracedSteps = 100;  // a trace of a whole run would not open
constexpr int64_t kLookAtSharesEverySteps = 30;

// What an evaluation is judged by.
BestResult Judged(const EvalResult& evaluation, int64_t step) {
  for (const auto& [name, value] : evaluation.metrics) {
    if (name == "map50_95" || name == "mean_iou" || name == "wer" || name == "cer")
      return {name, value, step};
  }
  if (evaluation.accuracy) return {"accuracy", *evaluation.accuracy, step};
  return {"loss", evaluation.loss, step};
}

// Keeps the better one in `best`; whether that is `now`.
bool TakeBetter(const BestResult& now, std::optional<BestResult>& best) {
  const bool known = best && best->metric == now.metric;
  const bool better =
      !known || (MoreIsBetter(now.metric) ? now.value > best->value : now.value < best->value);
  if (better) best = now;
  return better;
}

}  // namespace

TrainingLoop::TrainingLoop(const LoopRequest& request)
    : job_(*request.job),
      data_(*request.data),
      executor_(*request.executor),
      request_(request),
      runner_(*request.executor, *request.job),
      ranks_(request.communicator),
      tensors_(CollectTensors(*request.executor, request.wholes)),
      histograms_(tensors_),
      mean_of_form_(MeanOfForms()),
      state_(request.start),
      shares_(ranks_.size()),
      counters_(request.counters,
                [this](const std::string& alarm) { request_.observer->OnWarning(alarm); }, {}) {
  runner_.SetHooks(Hooks());
}

// A mean update's planned seconds over those of each form of batches.
std::vector<double> TrainingLoop::MeanOfForms() const {
  std::vector<double> means;
  const Program& program = executor_.program();
  for (size_t form = 0; form < std::max<size_t>(1, job_.lengths.size()); ++form) {
    const double form_s = FormSeconds(job_, program, static_cast<int>(form));
    means.push_back(form_s > 0 ? MeanUpdateSeconds(job_, program) / form_s : 1);
  }
  return means;
}

TrainingLoop::~TrainingLoop() = default;

// Between updates Run() checks for signals, so only the batches of an accumulated one ask.
StepRunner::Hooks TrainingLoop::Hooks() {
  StepRunner::Hooks hooks;
  hooks.execute = [this](int step, int slot) { return RunStep(step, slot); };
  if (job_.options.accumulate > 1 && MayGiveUpUpdate()) hooks.stop = StopSignal::Requested;
  return hooks;
}

Result<LoopResult> TrainingLoop::Run() {
  const std::string doubt = ConstantScaleDoubt(job_.options);
  if (!doubt.empty() && ranks_.leads()) request_.observer->OnWarning(doubt);
  started_s_ = saved_s_ = MonotonicSeconds();
  wall_before_s_ = state_.wall_s;
  epoch_ended_ = state_.step > 0 && state_.position.next_batch == 0;
  RIDGE_ASSIGN_OR_RETURN(
      std::vector<int> writers,
      ChooseWriters(request_.communicator, job_.options.checkpoint_writers, request_.folder));
  if (writers.size() > 1) writer_.emplace(*request_.communicator, std::move(writers));
  if (state_.owed_evaluation) RIDGE_RETURN_IF_ERROR(Evaluate());
  RIDGE_RETURN_IF_ERROR(runner_.StartLoader(data_, state_.position));
  StartEpochClock();
  while (!Done() && !Stopped()) {
    RIDGE_RETURN_IF_ERROR(RunUpdate());
    if (Stopped()) break;
    RIDGE_RETURN_IF_ERROR(AfterUpdate());
    result_.killed = state_.step == request_.kill_after_step;
    if (Done()) break;
    RIDGE_ASSIGN_OR_RETURN(const bool stops, StopRequested());
    result_.preempted = stops;
    if (!stops) RIDGE_RETURN_IF_ERROR(LookAtShares());
  }
  runner_.loader().Stop();
  if (!result_.killed) RIDGE_RETURN_IF_ERROR(Finish());
  result_.step_s = times_.Median();
  result_.collective_s = collective_times_.Median();
  result_.communication_s = shares_.communication_s();
  result_.pipeline_bytes = PipelineBytes();
  counters_.Stop();
  result_.energy_j = counters_.energy_j();
  result_.stopped_early = OutOfPatience() && state_.step < data_.total_steps;
  result_.state = state_;
  return std::move(result_);
}

// By a signal at any rank.  The ranks tell each other beside it how long they were in collectives.
Result<bool> TrainingLoop::StopRequested() {
  const bool mine = StopSignal::Requested() || state_.step == request_.preempt_after_step;
  RIDGE_ASSIGN_OR_RETURN(const bool any,
                         ranks_.Any(mine, static_cast<uint64_t>(1e9 * collective_s_)));
  shares_.Add(ranks_.told(), step_s_);
  return any;
}

// By what all ranks have measured since the last look; they come to the same end.
Result<std::optional<Redeal>> TrainingLoop::MeasuredRedeal() {
  const auto own = static_cast<double>(ShareOf(executor_.program())->owned().count());
  RIDGE_ASSIGN_OR_RETURN(const auto all,
                         ranks_.All({own, compute_times_.Median(), request_.start_s}));
  compute_times_ = StepTimes();
  Redeal redeal;
  redeal.step = state_.step;
  DealTerms terms = {data_.total_steps - state_.step, 0};
  for (const std::vector<double>& of : all) {
    redeal.ranks.push_back({static_cast<int64_t>(of[0]), of[1]});
    terms.start_s = std::max(terms.start_s, of[2]);
  }
  std::optional<Deal> better = BetterDeal(redeal.ranks, terms);
  if (!better) return {std::nullopt};
  redeal.deal = std::move(*better);
  return {std::move(redeal)};
}

// A new deal needs a new plan, so the run stops at a checkpoint and goes on from there.
Status TrainingLoop::LookAtShares() {
  if (request_.start_s <= 0 || ranks_.size() == 1) return Status();
  compute_times_.Add(step_s_ - collective_s_);
  if (compute_times_.count() < kLookAtSharesEverySteps) return Status();
  RIDGE_ASSIGN_OR_RETURN(std::optional<Redeal> redeal, MeasuredRedeal());
  if (!redeal) return Status();
  if (!HasCheckpoint()) RIDGE_RETURN_IF_ERROR(SaveCheckpoint(/*due=*/false));
  // Only the rank that leads knows.
  RIDGE_ASSIGN_OR_RETURN(const bool unsaved, ranks_.Any(!result_.last_checkpoint.ok()));
  if (!unsaved) result_.redeal = std::move(redeal);
  return Status();
}

// Whether only `update` changes the values that a checkpoint stores.
bool TrainingLoop::MayGiveUpUpdate() const {
  const std::vector<PersistentValue>& values = executor_.program().persistent;
  return std::none_of(values.begin(), values.end(), [](const PersistentValue& value) {
    return value.kind == ValueKind::kState && value.role != ValueRole::kGradient &&
           value.role != ValueRole::kOptimizer;
  });
}

Status TrainingLoop::RunUpdate() {
  lr_ = LearningRate(state_.schedule, state_.step);
  Result<StepRunner::Update> ran = runner_.Run({lr_, state_.step, job_.options.seed});
  if (executor_.program().pipeline != nullptr && ran.status().code() == ErrorCode::kFailed)
    return StageLossFailure(ran.status());
  RIDGE_ASSIGN_OR_RETURN(const StepRunner::Update update, std::move(ran));
  result_.preempted = update.stopped;
  if (update.stopped) return Status();
  Advance();
  // As long as a mean update would have taken.
  times_.Add(update.seconds * mean_of_form_[static_cast<size_t>(update.form)]);
  state_.window.Add(update.loss, update.correct, update.samples, update.wait_s, update.seconds);
  step_loss_ = update.loss;
  step_s_ = update.seconds;
  collective_s_ = update.collective_s;
  collective_times_.Add(collective_s_);
  counters_.Add(update.seconds, update.wait_s);
  ++state_.since_checkpoint.steps;
  state_.since_checkpoint.loss_sum += update.loss;
  return Status();
}

Status TrainingLoop::RunStep(int step, int slot) {
  const bool tracing = request_.log->tracing() && times_.count() < kTracedSteps;
  executor_.SetTiming(tracing);
  const double begin = MonotonicSeconds();
  const Status status = RunInTime(step, slot);
  if (status.code() == ErrorCode::kFailed) return LossFailure(status, step, slot);
  if (tracing) request_.log->TraceStep(executor_, step, slot, begin);
  return status;
}

// Other ranks may expect the step in about its planned time; the first one meets cold memory.
Status TrainingLoop::RunInTime(int step, int slot) {
  const bool first = state_.step == request_.start.step;
  const double planned_s = first ? std::max(job_.step_s, kFirstStep_s) : job_.step_s;
  const DoingScope doing(request_.communicator, {RankWork::kStep, state_.step, planned_s});
  if (request_.slower_s > 0) {
    const auto slices = static_cast<double>(ShareOf(executor_.program())->owned().count());
    std::this_thread::sleep_for(std::chrono::duration<double>(request_.slower_s * slices));
  }
  return executor_.Run(step, slot);
}

Status TrainingLoop::LossFailure(const Status& status, int step, int slot) {
  const Result<std::string> first = executor_.FirstNonFinite(step, slot);
  const std::string where = !first.ok()      ? first.status().message()
                            : first->empty() ? "none when the step is run again"
                                             : *first;
  return Status(ErrorCode::kFailed,
                fmt::format("step {}: {}; first non-finite value: {}. hint: {}a smaller --lr, "
                            "--clip-norm 1, or look for NaN in the data",
                            state_.step + 1, status.message(), where,
                            job_.operands == DType::kF16
                                ? "--precision bf16, which has larger numbers than 65504, "
                                : ""));
}

// At all ranks; none of them has the whole step, to look for the node.
Status TrainingLoop::StageLossFailure(const Status& status) const {
  return Status(ErrorCode::kFailed,
                fmt::format("step {}: {}. hint: a smaller --lr, --clip-norm 1, or look for NaN in "
                            "the data",
                            state_.step + 1, status.message()));
}

void TrainingLoop::Advance() {
  ++state_.step;
  state_.position.next_batch += job_.options.accumulate;
  epoch_ended_ = state_.position.next_batch == data_.steps_per_epoch * job_.options.accumulate;
  if (epoch_ended_) state_.position = {state_.position.epoch + 1, 0};
}

// The epoch, from 1, that the last update belonged to.
int64_t TrainingLoop::Epoch() const { return state_.position.epoch + (epoch_ended_ ? 0 : 1); }

Status TrainingLoop::AfterUpdate() {
  ReportStep();
  const bool evaluate = EvaluationDue();
  if (evaluate || epoch_ended_ || Done()) counters_.Pause();
  if (state_.window.steps >= kReportEverySteps || epoch_ended_ || Done())
    RIDGE_RETURN_IF_ERROR(Report());
  if (Done() || epoch_ended_) RIDGE_RETURN_IF_ERROR(AddHistograms());
  // The loader stops and drops its prefetched batches when an evaluation needs the slots, or when
  // an epoch ends before the data (the last batches fill no group).
  const int64_t used = data_.steps_per_epoch * job_.options.accumulate;
  const bool rest = epoch_ended_ && runner_.loader().batches_per_epoch() != used;
  if (evaluate || rest) runner_.loader().Stop();
  if (evaluate) state_.owed_evaluation = state_.window.steps > 0 ? WindowReport() : last_report_;
  RIDGE_ASSIGN_OR_RETURN(const bool due, CheckpointDue());
  if (due) counters_.Pause();
  if (due || Done()) RIDGE_RETURN_IF_ERROR(SaveCheckpoint(/*due=*/true));
  if (evaluate) RIDGE_RETURN_IF_ERROR(Evaluate());
  counters_.Resume();
  if (epoch_ended_) StopEpochClock();
  if ((evaluate || rest) && !Done() && !Stopped())
    RIDGE_RETURN_IF_ERROR(runner_.loader().Restart(state_.position));
  return Status();
}

bool TrainingLoop::EvaluationDue() const {
  if (data_.eval_set() == nullptr) return false;
  const int64_t every = job_.options.eval_every;
  return Done() || (every > 0 ? state_.step % every == 0 : epoch_ended_);
}

// Where ranks have parts of variables all of them save at the same step.
Result<bool> TrainingLoop::CheckpointDue() {
  const auto& [every, seconds] = job_.options.checkpoint_every;
  if (seconds > 0) {
    const bool mine = ranks_.leads() && MonotonicSeconds() - saved_s_ >= seconds;
    return request_.wholes == nullptr && !writer_ ? mine : ranks_.Any(mine);
  }
  return every > 0 ? state_.step % every == 0 : epoch_ended_;
}

void TrainingLoop::ReportStep() {
  const MetricsWindow& window = state_.window;
  StepReport report;
  report.step = state_.step;
  report.epoch = Epoch();
  report.step_loss = step_loss_;
  report.loss = window.loss();
  if (job_.classifier) report.accuracy = window.accuracy();
  report.samples_s = window.samples_s();
  report.input_wait = window.input_wait();
  report.input_stages = WindowStages();
  report.gpu = counters_.SinceReport();
  report.lr = lr_;
  const auto done = static_cast<double>(state_.step - request_.start.step);
  const auto left = static_cast<double>(data_.total_steps - state_.step);
  report.eta_s = (MonotonicSeconds() - started_s_) / done * left;
  report.bad_records = data_.bad_records->count();
  report.communication = shares_.communication();
  if (report.communication) report.slowest_rank = shares_.slowest();
  request_.observer->OnStep(report);
}

MetricsReport TrainingLoop::WindowReport() const {
  MetricsReport report;
  report.step = state_.step;
  report.epoch = Epoch();
  report.loss = state_.window.loss();
  if (job_.classifier) report.accuracy = state_.window.accuracy();
  report.lr = lr_;
  report.samples_s = state_.window.samples_s();
  report.input_wait = state_.window.input_wait();
  report.input_stages = WindowStages();
  report.step_s = state_.window.step_s();
  report.gpu = counters_.SinceReport();
  return report;
}

// What the workers did since the last report: they are ahead of the steps.
StageSeconds TrainingLoop::WindowStages() const {
  return runner_.loader().stage_seconds().Since(stages_before_);
}

Status TrainingLoop::Report() {
  last_report_ = WindowReport();
  stages_before_ = runner_.loader().stage_seconds();
  result_.loss = last_report_.loss;
  MetricsReport logged = last_report_;
  RIDGE_ASSIGN_OR_RETURN(logged.loss_scaling, Scaling());
  request_.log->AddReport(logged);
  counters_.EndReport();
  state_.window = {};
  return Status();
}

// Warns once where overflows have made the scale low.
Result<std::optional<LossScaling>> TrainingLoop::Scaling() {
  RIDGE_ASSIGN_OR_RETURN(const std::optional<LossScaling> scaling,
                         ReadLossScaling(executor_, job_.options, state_.step));
  result_.loss_scaling = scaling;
  RIDGE_ASSIGN_OR_RETURN(const std::optional<LossScaleOptions> asked, LossScaleOf(job_.options));
  // One that has grown is as large as gradients allow.
  const bool shrank = scaling && asked && asked->dynamic && scaling->scale < asked->scale;
  const std::string doubt = shrank ? LossScaleDoubt(scaling->scale) : "";
  if (doubt.empty() || told_of_scale_) return scaling;
  told_of_scale_ = true;
  request_.observer->OnWarning(
      fmt::format("step {}: {}, and {} updates have overflowed. hint: --precision bf16, a smaller "
                  "--lr, or --clip-norm 1",
                  state_.step, doubt, scaling->skipped_steps));
  return scaling;
}

int64_t TrainingLoop::PipelineBytes() const {
  const BatchLoader::HeldBytes train = runner_.loader().held_bytes();
  const auto eval = evaluator_ != nullptr ? evaluator_->held_bytes() : BatchLoader::HeldBytes{};
  return train.own_bytes + eval.own_bytes + std::max(train.thread_bytes, eval.thread_bytes);
}

// The loader may go on: its slots hold no variables.
void TrainingLoop::WriteHistograms() {
  const double begin = MonotonicSeconds();
  histograms_.Write(state_.step, *request_.log);
  saving_s_ += MonotonicSeconds() - begin;
}

// At the first rank, if they are due.
Status TrainingLoop::AddHistograms() {
  if (!ranks_.leads()) return Serve();
  if (Done() || histograms_.Due(MonotonicSeconds())) WriteHistograms();
  return Release();
}

// What the first rank reads of the others' parts comes between these two.
Status TrainingLoop::Serve() {
  return request_.wholes == nullptr ? Status() : request_.wholes->Serve();
}
Status TrainingLoop::Release() {
  return request_.wholes == nullptr ? Status() : request_.wholes->Release();
}

Status TrainingLoop::Evaluate() {
  const DoingScope doing(request_.communicator, {RankWork::kEvaluation, state_.step});
  if (evaluator_ == nullptr) {
    evaluator_ = std::make_unique<Evaluator>(executor_, data_.eval_set(), data_.eval_spec,
                                             data_.eval_subject, job_.options.batch, data_.workers,
                                             data_.bad_records, request_.communicator);
  }
  RIDGE_ASSIGN_OR_RETURN(const std::optional<EvalResult> evaluation, evaluator_->Run());
  result_.preempted = !evaluation;
  if (!evaluation) return Status();
  evaluated_step_ = state_.step;
  result_.evaluation = evaluation;
  request_.observer->OnEvaluation({state_.step, Epoch(), data_.during_name(), *evaluation});
  if (!state_.owed_evaluation) return Status();  // the resumed run had finished
  LogEvaluation(*evaluation);
  state_.owed_evaluation.reset();
  CountEvaluation(*evaluation);
  ChooseByEvaluation(*evaluation);
  return Status();
}

void TrainingLoop::LogEvaluation(const EvalResult& evaluation) const {
  MetricsReport report = *state_.owed_evaluation;
  report.step = state_.step;
  report.epoch = Epoch();
  report.evaluated_on = data_.during_name();
  report.evaluation_loss = evaluation.loss;
  report.evaluation_accuracy = evaluation.accuracy;
  report.evaluation_metrics = evaluation.metrics;
  request_.log->AddEvaluation(report);
}

// Updates `best` and the checkpoint's state after its pending evaluation.
void TrainingLoop::ChooseByEvaluation(const EvalResult& evaluation) {
  if (!HasCheckpoint() || request_.checkpoints == nullptr) return;
  const bool best = data_.validation && TakeBetter(Judged(evaluation, state_.step), state_.best);
  const double begin = MonotonicSeconds();
  Warn("`best` is not up to date", request_.checkpoints->Amend(state_, best));
  saving_s_ += MonotonicSeconds() - begin;
}

// For --patience; a test set must not stop a run either.
void TrainingLoop::CountEvaluation(const EvalResult& evaluation) {
  if (!data_.validation) return;
  const bool better = TakeBetter(Judged(evaluation, state_.step), state_.best_evaluation);
  state_.evaluations_since_best = better ? 0 : state_.evaluations_since_best + 1;
}

bool TrainingLoop::OutOfPatience() const {
  const int64_t patience = job_.options.patience;
  return patience > 0 && state_.evaluations_since_best >= patience;
}

// Whether this step has a checkpoint.
bool TrainingLoop::HasCheckpoint() const {
  if (saved_step_ == state_.step) return result_.last_checkpoint.ok();
  return state_.step == request_.start.step && state_.step > 0;  // it was loaded
}

// A test set must not choose the best checkpoint: without a validation set the mean training loss
// since the last scheduled checkpoint does.
Status TrainingLoop::SaveCheckpoint(bool due) {
  bool best = false;
  if (due && !data_.validation && state_.since_checkpoint.steps > 0) {
    const LossSum& sum = state_.since_checkpoint;
    best = TakeBetter({"training_loss", sum.loss_sum / static_cast<double>(sum.steps), state_.step},
                      state_.best);
  }
  if (due) state_.since_checkpoint = {};
  saved_step_ = state_.step;
  const DoingScope doing(request_.communicator, {RankWork::kCheckpoint, state_.step});
  if (request_.checkpoints != nullptr) return WriteCheckpoint(best);
  return writer_ ? writer_->Join(tensors_) : Serve();
}

Status TrainingLoop::WriteCheckpoint(bool best) {
  const double begin = MonotonicSeconds();
  state_.wall_s = wall_before_s_ + begin - started_s_;
  ParallelWriter* writer = writer_ ? &*writer_ : nullptr;
  result_.last_checkpoint = request_.checkpoints->Save(tensors_, state_, best, writer);
  RIDGE_RETURN_IF_ERROR(writer == nullptr ? Release() : writer->lost());
  saved_s_ = MonotonicSeconds();
  request_.log->Flush();
  saving_s_ += MonotonicSeconds() - begin;
  Warn("no checkpoint", result_.last_checkpoint);
  if (!result_.last_checkpoint.ok()) return Status();
  if (request_.on_checkpoint) request_.on_checkpoint(state_.step);
  request_.observer->OnCheckpoint(state_.step, request_.checkpoints->PathOf(state_.step));
  return Status();
}

void TrainingLoop::Warn(const char* what, const Status& status) {
  if (status.ok()) return;
  request_.observer->OnWarning(fmt::format("step {}: {}: {}", state_.step, what, status.message()));
}

// At the end of the run or a stop: saves and evaluates if that is pending at this step.
Status TrainingLoop::Finish() {
  if (!HasCheckpoint() && saved_step_ != state_.step)
    RIDGE_RETURN_IF_ERROR(SaveCheckpoint(/*due=*/false));
  if (Done() && !result_.preempted && data_.eval_set() != nullptr && evaluated_step_ != state_.step)
    RIDGE_RETURN_IF_ERROR(Evaluate());
  if (Done() && !result_.preempted && evaluator_ != nullptr && evaluated_step_ == state_.step) {
    RIDGE_ASSIGN_OR_RETURN(result_.record, evaluator_->Record(data_.during_name(), state_.step));
  }
  state_.wall_s = wall_before_s_ + MonotonicSeconds() - started_s_;
  return Status();
}

void TrainingLoop::StartEpochClock() {
  epoch_started_s_ = MonotonicSeconds();
  saving_s_ = 0;
  epoch_is_whole_ = state_.position.next_batch == 0;
}

void TrainingLoop::StopEpochClock() {
  if (epoch_is_whole_) {
    epochs_s_ += MonotonicSeconds() - epoch_started_s_ - saving_s_;
    result_.epoch_s = epochs_s_ / static_cast<double>(++epochs_timed_);
  }
  StartEpochClock();
}

}  // namespace ridge
