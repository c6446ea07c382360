#include "ridge/train/loop/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <tuple>

#include "ridge/core/files.h"
#include "ridge/core/process.h"
#include "ridge/core/units.h"
#include "ridge/core/version.h"
#include "ridge/dist/agreement.h"
#include "ridge/dist/gather.h"
#include "ridge/dist/rank_doing.h"
#include "ridge/graph/text.h"
#include "ridge/plan/mesh_nodes.h"
#include "ridge/plan/tree_sums.h"
#include "ridge/runtime/kernel_times.h"
#include "ridge/runtime/peak_memory.h"
#include "ridge/runtime/stage_variables.h"
#include "ridge/train/job/balanced_classes.h"
#include "ridge/train/job/rehearsed_job.h"
#include "ridge/train/load/folder_options.h"
#include "ridge/train/load/forward.h"
#include "ridge/train/load/length_forms.h"
#include "ridge/train/load/onnx_source.h"
#include "ridge/train/loop/measured_bytes.h"
#include "ridge/train/loop/run_once.h"
#include "ridge/train/loop/stages_fit.h"
#include "ridge/train/loop/stop_signal.h"
#include "ridge/train/loop/training_loop.h"
#include "ridge/train/store/bad_records_file.h"
#include "ridge/train/store/data_digest.h"
#include "ridge/train/store/hyperparameters.h"
#include "ridge/train/store/parameters_hash.h"
#include "ridge/train/store/preprocessing_file.h"
#include "ridge/train/store/run.h"
#include "ridge/train/store/run_difference.h"
#include "ridge/train/store/run_folder.h"
#include "ridge/train/store/run_status.h"
#include "ridge/train/store/shares_file.h"

namespace ridge {
namespace {

// Whether a new run starts: also with --resume, if a killed job has not created its folder.
bool StartsAnew(const TrainRequest& request) {
  const TrainOptions& options = request.options;
  return !request.resume || (!options.out.empty() && !Run::Exists(options.out) &&
                             !options.model.empty() && !options.data.empty());
}

std::string TextOf(const DataDigest& data) {
  std::string text;
  for (const SourceDigest& source : data)
    text += fmt::format("{} {} {}\n", source.part, source.samples, source.crc32c);
  return text;
}

// The state of one call of Train, shared by its stages.
class TrainRun {
 public:
  TrainRun(const TrainRequest& request, const Machine& machine, TrainObserver& observer)
      : request_(request),
        machine_(machine),
        ranks_(machine.communicator),
        observer_(ranks_.leads() ? observer : silent_),
        resume_(!StartsAnew(request)) {}

  // The whole run; what became of it is in status.json, if it came to its folder.
  Result<TrainOutcome> Train();
  // Set by Train() when the run is to go on with other shares; its outcome says nothing then.
  const std::optional<Redeal>& redeal() const { return redeal_; }
  TrainRequest GoingOn() const;  // from its checkpoint

 private:
  Result<TrainOutcome> TrainToEnd();
  Status ShareFolder();
  void SayStatus(RunStatus status);
  RunStatus StatusOf(const Result<TrainOutcome>& outcome) const;
  Status Resolve();
  Status AddInTree();
  Status TakeShares();
  Status KeepShares();
  Status AgreeOnPlan();
  Status AgreeOnStart(const CheckpointState& start);
  RunLog OpenLog(const CheckpointState& start);
  Status StartFromRun();
  Result<std::optional<TrainOutcome>> FinishedBefore() const;
  Status RefuseFewer(const Position& position, int64_t step) const;
  bool HasCheckpoint() const;
  Status Prepare();
  Status TakeKernels();
  Status TakeClassWeights(Forward& forward);
  TrainOptions StartOptions() const;
  Status MakeExecutor();
  Status OpenFolder();
  Status WritePlan();
  Result<CheckpointState> StartState();
  Status GoOn(CheckpointState& state);
  Status CheckSame(const CheckpointState& now, const CheckpointState& then) const;
  Status TakeBadRecords();
  Status KeepBadRecords() const;
  void FitToData(CheckpointState& state);
  Status ForgetEnd(const CheckpointState& start) const;
  Status ReportStart(const CheckpointState& start);
  Result<TrainOutcome> Conclude(const LoopResult& result);
  Result<TrainOutcome> MakeStoppedOutcome(const LoopResult& result, RunEnd end) const;
  Result<bool> EvaluateAtEnd(const LoopResult& result, RunSummary& summary);
  Status Refuse();
  Status Summarize(const LoopResult& result, RunSummary& summary) const;
  Status GatherRanks(const LoopResult& result, RunSummary& summary);

  const TrainRequest& request_;
  Machine machine_;
  Agreement ranks_;
  TrainObserver silent_;  // of ranks that do not lead
  TrainObserver& observer_;
  const bool resume_;
  TrainOptions options_;
  std::optional<FileLock> lock_;  // of the run folder
  std::string started_from_;      // run whose weights a new run starts from
  std::string source_;            // file, run or spec that the model is loaded from
  std::optional<Graph> forward_;
  std::optional<Graph> text_;        // of a graph in text form: what the run keeps
  std::vector<LengthForm> lengths_;  // its shorter forms, for --bucket
  ModelNotes notes_;
  std::optional<double> fixed_rate_;  // of a model with its own step
  JobData data_;
  PlannedJob job_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<WholeVariables> wholes_;  // null: all variables are whole
  std::optional<RunFolder> folder_;
  std::optional<std::string> status_folder_;  // the run's, at every rank, once it is there
  std::optional<EvaluationRecord> record_;    // of the last evaluation
  ScheduleOptions schedule_before_;           // of the checkpoint
  std::optional<Redeal> redeal_;
  const double started_s_ = MonotonicSeconds();
};

Result<TrainOutcome> TrainRun::Train() {
  Result<TrainOutcome> outcome = TrainToEnd();
  // A rank that does not lead speaks of failures alone: it may be the only one that fails.
  const bool goes_on = outcome.ok() && redeal_;
  if (status_folder_ && !goes_on && (ranks_.leads() || !outcome.ok())) SayStatus(StatusOf(outcome));
  return outcome;
}

TrainRequest TrainRun::GoingOn() const {
  TrainRequest request = request_;
  request.resume = true;
  request.options.out = *status_folder_;
  return request;
}

// All ranks know the run's folder from now on.
Status TrainRun::ShareFolder() {
  std::string path = options_.out;
  if (machine_.communicator != nullptr) {
    RIDGE_ASSIGN_OR_RETURN(path, TextOfFirst(*machine_.communicator, path));
  }
  status_folder_ = path;
  return Status();
}

void TrainRun::SayStatus(RunStatus status) {
  if (ranks_.leads() && !status.checkpoint) {
    const std::vector<int64_t> steps = Checkpoints(folder_->checkpoints()).Steps();
    if (!steps.empty()) status.checkpoint = steps.front();
  }
  status.ranks = ranks_.size();
  const auto share = executor_ == nullptr ? std::nullopt : ShareOf(executor_->program());
  if (share && share->ranks > 1) status.slices = share->Counts();
  status.step = std::max(status.step, status.checkpoint.value_or(0));
  const Status written = WriteRunStatus(*status_folder_, ranks_.rank(), status);
  if (!written.ok()) observer_.OnWarning(written.message());
}

RunStatus TrainRun::StatusOf(const Result<TrainOutcome>& outcome) const {
  RunStatus status;
  if (!outcome.ok()) {
    const ErrorCode code = outcome.status().code();
    status.state = RunPhase::kFailed;
    status.why = outcome.status().message();
    status.may_retry = code == ErrorCode::kUnavailable || IsOfDevice(code);
    return status;
  }
  status.step = outcome->step;
  switch (outcome->end) {
    case RunEnd::kCompleted:
    case RunEnd::kWasFinished:
      status.state = RunPhase::kDone;
      break;
    case RunEnd::kPreempted:
      status.state = RunPhase::kStopped;
      break;
    case RunEnd::kCheckpointFailed:
      status.state = RunPhase::kFailed;
      status.why = outcome->message;
      status.may_retry = true;
      break;
  }
  return status;
}

Result<TrainOutcome> TrainRun::TrainToEnd() {
  StopSignal signals;
  RIDGE_RETURN_IF_ERROR(Resolve());
  RIDGE_ASSIGN_OR_RETURN(const std::optional<TrainOutcome> finished, FinishedBefore());
  if (finished) {
    status_folder_ = options_.out;
    return *finished;
  }
  if (HasCheckpoint()) signals.HasCheckpoint();
  RIDGE_RETURN_IF_ERROR(Prepare());
  RIDGE_RETURN_IF_ERROR(MakeExecutor());
  RIDGE_RETURN_IF_ERROR(AgreeOnPlan());
  RIDGE_RETURN_IF_ERROR(OpenFolder());
  RIDGE_RETURN_IF_ERROR(ShareFolder());
  RIDGE_RETURN_IF_ERROR(WritePlan());
  RIDGE_RETURN_IF_ERROR(TakeBadRecords());
  const Result<CheckpointState> started = StartState();
  if (!started.ok()) {
    RIDGE_RETURN_IF_ERROR(KeepBadRecords());
    return started.status();
  }
  const CheckpointState& start = *started;
  RIDGE_RETURN_IF_ERROR(AgreeOnStart(start));
  if (resume_ && ranks_.leads()) RIDGE_RETURN_IF_ERROR(ForgetEnd(start));
  signals.Ask();
  if (ranks_.leads()) SayStatus({RunPhase::kRunning, start.step});
  RIDGE_RETURN_IF_ERROR(ReportStart(start));
  RunLog log = OpenLog(start);
  std::optional<CheckpointWriter> checkpoints;
  if (ranks_.leads()) {
    checkpoints.emplace(folder_->checkpoints(), options_.keep);
    checkpoints->RemoveTemporaries();
  }
  TrainingLoop loop({&job_, &data_, executor_.get(), checkpoints ? &*checkpoints : nullptr, &log,
                     &observer_, machine_.communicator, wholes_.get(), options_.out, start,
                     [this](int64_t step) {
                       SayStatus({RunPhase::kRunning, step, step});
                     },
                     request_.preempt_after_step, request_.kill_after_step, request_.slower_s,
                     ParseShares(options_.shares)->automatic ? MonotonicSeconds() - started_s_ : 0,
                     ranks_.leads() ? machine_.counters : nullptr});
  Result<LoopResult> result = loop.Run();
  if (result.ok()) redeal_ = result->redeal;
  Result<TrainOutcome> outcome = result.ok() ? Conclude(*result) : result.status();
  if (record_) log.AddPictures(*record_);
  if (!result.ok() || !(result->preempted || result->killed || redeal_))
    log.AddEnd(result.ok() && result->last_checkpoint.ok());
  log.Close();
  return outcome;
}

RunLog TrainRun::OpenLog(const CheckpointState& start) {
  if (!ranks_.leads()) return RunLog();
  std::optional<RunLog::Resumed> resumed;
  if (resume_) resumed = {start.step, start.owed_evaluation.has_value()};
  RunLog log(*folder_, resumed, options_.trace,
             [this](const std::string& text) { observer_.OnWarning(text); });
  log.KeepBadRecords(data_.bad_records);
  log.AddHyperparameters(HyperparametersOf(options_));
  if (!resume_) log.AddGraph(*forward_);
  return log;
}

// Several ranks, or one that others may join later.
Status TrainRun::AddInTree() {
  if (!machine_.adds_in_tree() || options_.sums == "tree" || !options_.mesh.empty())
    return Status();
  if (resume_ || request_.given.contains("sums")) {
    return InvalidArgument(fmt::format(
        "{}--sums is {}, which gives other bits on another number of devices; --devices needs "
        "tree. hint: {}",
        resume_ ? options_.out + ": " : "", options_.sums,
        resume_ ? "a new run, or --resume without --devices" : "--sums tree"));
  }
  options_.sums = "tree";
  return Status();
}

// Those of a run are for as many devices as it had, by options or as they were dealt last.
Status TrainRun::TakeShares() {
  if (resume_ && !request_.given.contains("shares") && !CheckShares(options_, ranks_.size()).ok())
    options_.shares = "equal";
  RIDGE_RETURN_IF_ERROR(CheckShares(options_, ranks_.size()));
  RIDGE_ASSIGN_OR_RETURN(const SharesOption shares, ParseShares(options_.shares));
  if (!resume_ || !shares.automatic || !machine_.dealt.empty()) return Status();
  RIDGE_ASSIGN_OR_RETURN(const int64_t slices, ParseSlices(options_.slices));
  const auto ranks = static_cast<size_t>(ranks_.size());
  machine_.dealt =
      NewestShares(folder_->File(kSharesFile), ranks, slices).value_or(std::vector<int64_t>());
  return Status();
}

Status TrainRun::KeepShares() {
  SharesLine line = {redeal_->step, redeal_->deal.slices, {}, {}};
  for (const RankRate& rank : redeal_->ranks) {
    line.slices_before.push_back(rank.slices);
    line.compute_s.push_back(rank.compute_s);
  }
  observer_.OnShares({line.step, line.slices, line.slices_before, redeal_->deal.slowest_s,
                      *std::max_element(line.compute_s.begin(), line.compute_s.end())});
  return ranks_.leads() ? AddShares(folder_->File(kSharesFile), line) : Status();
}

// Before the first rank writes: all have looked for the run by then.
Status TrainRun::AgreeOnPlan() {
  TrainOptions options = options_;
  options.out.clear();
  RIDGE_RETURN_IF_ERROR(ranks_.Same("other options", OptionsToJson(options), kStartAlike));
  RIDGE_RETURN_IF_ERROR(ranks_.Same("another type of device", machine_.profile.id,
                                    "machines of one kind, and as many threads a rank"));
  RIDGE_RETURN_IF_ERROR(
      ranks_.Same("other exchanges", ExchangeOrder(executor_->program()), kStartAlike));
  return ranks_.Same("other kernels", HashKernelChoices(executor_->program()), kStartAlike);
}

// Before a resumed run changes: all have read it by then.
Status TrainRun::AgreeOnStart(const CheckpointState& start) {
  RIDGE_RETURN_IF_ERROR(
      ranks_.Same("other data", TextOf(start.data), "the same files on all machines"));
  return ranks_.Same("another checkpoint", std::to_string(start.step),
                     "a run folder that all machines share");
}

// Resolves the options, and locks an existing run folder for this process.
Status TrainRun::Resolve() {
  RIDGE_ASSIGN_OR_RETURN(options_, ResolveOptions(request_, &notes_.notes));
  RIDGE_RETURN_IF_ERROR(AddInTree());
  if (resume_) {
    RIDGE_ASSIGN_OR_RETURN(folder_, RunFolder::Continue(options_.out));
    RIDGE_RETURN_IF_ERROR(TakeShares());
    if (!ranks_.leads()) return Status();
    RIDGE_ASSIGN_OR_RETURN(lock_, folder_->Lock());
    return Status();
  }
  RIDGE_RETURN_IF_ERROR(TakeShares());
  if (Run::Exists(options_.out)) return RunFolder::Create(options_.out, options_.model).status();
  return StartFromRun();
}

// When options_.model is a run: takes its model, and its model options except those that are given.
Status TrainRun::StartFromRun() {
  if (!Run::Exists(options_.model)) return Status();
  RIDGE_RETURN_IF_ERROR(RefuseWeightsOfRun("train", options_.model, options_.weights));
  RIDGE_ASSIGN_OR_RETURN(const Run run, Run::Open(options_.model));
  RIDGE_ASSIGN_OR_RETURN(const LoadedCheckpoint start,
                         run.checkpoints().Find(request_.start_checkpoint));
  options_.start = start.path;
  TakeModelOptions(run.options(), request_.given, options_);
  source_ = run.ModelSource();
  started_from_ = run.path();
  if (!IsGraphFile(options_.model) && !IsOnnxFile(options_.model)) options_.model = source_;
  return Status();
}

// The outcome of a resumed run that has its summary and nothing left to do.
Result<std::optional<TrainOutcome>> TrainRun::FinishedBefore() const {
  if (!resume_) return {std::nullopt};
  RIDGE_ASSIGN_OR_RETURN(const Run run, Run::Open(options_.out));
  const Result<std::optional<RunSummary>> summary = run.Summary();
  if (!summary.ok() || !*summary) return {std::nullopt};  // an unreadable one is written anew
  const int64_t steps = (*summary)->steps, epochs = (*summary)->epochs;
  RIDGE_RETURN_IF_ERROR(RefuseFewer({epochs, 0}, steps));
  const bool left = options_.steps ? *options_.steps > steps : options_.epochs.value_or(1) > epochs;
  const std::optional<EarlyStop>& early = (*summary)->stopped_early;
  const bool impatient = early && options_.patience > 0 && options_.patience <= early->evaluations;
  if (left && !impatient) return {std::nullopt};
  const std::string done =
      fmt::format("{} is finished: {}, {}", run.path(), FormatCountOf(epochs, "epoch"),
                  FormatCountOf(steps, "step"));
  const std::string hint = impatient ? fmt::format(
                                           "; stopped early. hint: --resume {} --patience N goes "
                                           "on with N above {}, or 0",
                                           run.path(), early->evaluations)
                                     : fmt::format(". hint: --resume {} --{} N goes on to N",
                                                   run.path(), options_.steps ? "steps" : "epochs");
  return {TrainOutcome{RunEnd::kWasFinished, run.path(), steps, **summary, done + hint}};
}

// Refuses --epochs or --steps that a resumed run is past.
Status TrainRun::RefuseFewer(const Position& position, int64_t step) const {
  const int64_t begun = position.epoch + (position.next_batch > 0 ? 1 : 0);
  if (request_.given.contains("steps") && *options_.steps < step) {
    return InvalidArgument(
        fmt::format("--steps is {}; {} has done {}. hint: a larger number goes on", *options_.steps,
                    options_.out, step));
  }
  if (!request_.given.contains("epochs") || *options_.epochs >= begun) return Status();
  return InvalidArgument(
      fmt::format("--epochs is {}; {} has come to epoch {}. hint: a larger number goes on",
                  *options_.epochs, options_.out, begun));
}

bool TrainRun::HasCheckpoint() const {
  return resume_ && !Checkpoints(folder_->checkpoints()).Steps().empty();
}

// A new run may become smaller, a resumed one may not.
Status TrainRun::Refuse() {
  if (!resume_) return observer_.OnRefused(job_);
  Refusal refusal = RefusalOf(job_);
  refusal.resumed = true;
  return DoesNotFit(refusal);
}

// All refusals happen here, before anything is written.
Status TrainRun::Prepare() {
  RIDGE_RETURN_IF_ERROR(TakeKernels());
  RIDGE_RETURN_IF_ERROR(CheckOptions(options_));
  options_.threads = std::max(machine_.threads(), machine_.inter_op.streams);
  const std::string run = resume_ ? options_.out : started_from_;
  if (source_.empty()) source_ = resume_ ? options_.out : options_.model;
  RIDGE_ASSIGN_OR_RETURN(Forward forward, LoadForward(StartOptions(), source_, run));
  forward.notes.notes.insert(forward.notes.notes.begin(), notes_.notes.begin(), notes_.notes.end());
  observer_.OnModel(forward.notes);
  notes_ = forward.notes;
  fixed_rate_ = FixedRate(forward);
  RIDGE_ASSIGN_OR_RETURN(lengths_, LoadLengthForms(StartOptions(), forward, source_));
  RIDGE_ASSIGN_OR_RETURN(data_, OpenJobData(options_, forward.graph, forward.facts, forward.data,
                                            forward.preprocessing, lengths_));
  for (const std::string& note : data_.notes) observer_.OnWarning(note);
  RIDGE_RETURN_IF_ERROR(TakeClassWeights(forward));
  forward_ = std::move(forward.graph);
  text_ = std::move(forward.source);
  RIDGE_ASSIGN_OR_RETURN(job_, PlanJob(options_, *forward_, &data_, machine_, lengths_));
  TakeChoices(job_.options, options_);
  if (job_.program.pipeline != nullptr) return CheckStagesFit(job_, ranks_);
  return job_.fits() ? Status() : Refuse();
}

// A resumed run chooses kernels by its stored times: the machine's may have changed since.
Status TrainRun::TakeKernels() {
  if (!resume_ || options_.kernels != "tuned") return Status();
  RIDGE_ASSIGN_OR_RETURN(KernelTimes times, ReadKernelTimes(folder_->File("kernels.json")));
  machine_.kernel_s = std::move(times.kernel_s);
  return Status();
}

// Counts the labels for --class-weights auto; the options keep the numbers, so that a resumed run
// needs neither the counts nor the file.
Status TrainRun::TakeClassWeights(Forward& forward) {
  std::vector<double> weights = forward.loss_shape.class_weights;
  if (forward.loss_shape.class_weights_come) {
    RIDGE_ASSIGN_OR_RETURN(weights, BalancedClassWeights(data_, forward.graph, forward.facts));
    SetClassWeights(weights, forward.graph);
    for (LengthForm& form : lengths_) SetClassWeights(weights, form.graph);
  }
  options_.class_weight.clear();
  for (const double weight : weights) options_.class_weight.push_back(fmt::format("{}", weight));
  return Status();
}

// A resumed run has its values in a checkpoint, so the weights file need not exist.
TrainOptions TrainRun::StartOptions() const {
  TrainOptions options = options_;
  if (HasCheckpoint()) {
    options.weights.clear();
    options.weights_skip.clear();
  }
  return options;
}

Status TrainRun::MakeExecutor() {
  RehearsalOptions rehearsal;
  rehearsal.kernels_s = request_.rehearse_s;
  rehearsal.updates_s = 3 * request_.rehearse_s;
  rehearsal.will_run = true;
  RIDGE_ASSIGN_OR_RETURN(executor_, RehearseJob(machine_, &data_, rehearsal, job_));
  RIDGE_RETURN_IF_ERROR(executor_->transfers().Initialize(options_.seed));
  if (executor_->program().place) {
    wholes_ = MakeWholeVariables(*executor_, machine_.communicator);
    RIDGE_RETURN_IF_ERROR(wholes_->Initialize(options_.seed));
  }
  if (!options_.start.empty() && !HasCheckpoint())
    RIDGE_RETURN_IF_ERROR(LoadStartValues(options_.start, *executor_, wholes_.get()));
  if (executor_->program().pipeline != nullptr) return CheckStagesFit(job_, ranks_);
  if (job_.fits()) return Status();
  wholes_.reset();
  executor_.reset();  // its memory is free for smaller plans
  return Refuse();
}

Status TrainRun::OpenFolder() {
  if (resume_ || !ranks_.leads()) return Status();
  RIDGE_ASSIGN_OR_RETURN(folder_, RunFolder::Create(options_.out, options_.model));
  options_.out = folder_->path();
  RIDGE_ASSIGN_OR_RETURN(lock_, folder_->Lock());
  if (Run::Exists(options_.out))  // another process started at the same time
    return RunFolder::Create(options_.out, options_.model).status();
  options_.data_dims = notes_.data_dims;
  if (IsGraphFile(options_.model)) {
    Graph graph = *text_;
    RIDGE_RETURN_IF_ERROR(LoadInitialTensors(graph));
    RIDGE_RETURN_IF_ERROR(WriteFileAtomically(folder_->File("model.ridge"), PrintGraph(graph)));
  }
  if (IsOnnxFile(options_.model)) RIDGE_RETURN_IF_ERROR(KeepOnnx(source_, notes_, folder_->path()));
  if (data_.preprocessing != nullptr)
    RIDGE_RETURN_IF_ERROR(WritePreprocessing(folder_->path(), *data_.preprocessing));
  if (options_.kernels == "tuned") {
    const KernelTimes times{machine_.profile.id, /*library=*/"", /*made_at=*/"", machine_.kernel_s};
    RIDGE_RETURN_IF_ERROR(
        WriteFileAtomically(folder_->File("kernels.json"), KernelTimesToJson(times)));
  }
  return WriteFileAtomically(folder_->File("options.json"), OptionsToJson(options_));
}

Status TrainRun::WritePlan() {
  const PlanSummary summary = SummarizeJob(job_, executor_->program());
  const std::string text = observer_.OnPlanned(job_, summary);
  if (resume_ || !ranks_.leads()) return Status();
  if (!text.empty()) RIDGE_RETURN_IF_ERROR(WriteFileAtomically(folder_->File("plan.txt"), text));
  return WriteFileAtomically(folder_->File("plan.json"), PlanToJson(summary) + "\n");
}

// Those that an earlier part of the run found.
Status TrainRun::TakeBadRecords() {
  if (!resume_ || !data_.bad_records->skips()) return Status();
  RIDGE_ASSIGN_OR_RETURN(const std::vector<BadRecord> records,
                         ReadBadRecords(folder_->File(kBadRecordsFile)));
  for (const BadRecord& record : records)
    RIDGE_RETURN_IF_ERROR(data_.bad_records->Add(record.origin, record.reason));
  return Status();
}

Status TrainRun::KeepBadRecords() const {
  const std::vector<BadRecord> records = data_.bad_records->List();
  if (records.empty() || !ranks_.leads()) return Status();
  return WriteBadRecords(folder_->File(kBadRecordsFile), records);
}

Result<CheckpointState> TrainRun::StartState() {
  CheckpointState state;
  state.seed = options_.seed;
  state.model = options_.model;
  state.options_json = OptionsToJson(options_);
  state.kernels_sha256 = HashKernelChoices(executor_->program());
  RIDGE_ASSIGN_OR_RETURN(state.data,
                         DigestData(data_.train, data_.validation, data_.test, data_.bad_records));
  state.cpu = machine_.profile.id;
  state.libraries = machine_.libraries;
  state.threads = machine_.threads();
  state.ridge_version = kRidgeVersion;
  if (resume_) RIDGE_RETURN_IF_ERROR(GoOn(state));
  state.schedule = {options_.schedule, fixed_rate_.value_or(options_.lr), options_.warmup,
                    data_.total_steps};
  return state;
}

// Loads the variables and the position of the newest checkpoint.
Status TrainRun::GoOn(CheckpointState& state) {
  if (!HasCheckpoint()) {
    observer_.OnWarning(folder_->path() + ": no checkpoint yet; starting at step 0");
    return Status();
  }
  RIDGE_ASSIGN_OR_RETURN(
      const LoadedCheckpoint loaded,
      Checkpoints(folder_->checkpoints())
          .Load(kNewestCheckpoint, CollectTensors(*executor_, wholes_.get()), LoadMode::kResume));
  for (const std::string& warning : loaded.warnings)
    observer_.OnWarning(warning + "; using " + loaded.path);
  RIDGE_RETURN_IF_ERROR(CheckSame(state, loaded.state));
  RIDGE_RETURN_IF_ERROR(RefuseFewer(loaded.state.position, loaded.state.step));
  state.step = loaded.state.step;
  state.position = loaded.state.position;
  state.best = loaded.state.best;
  state.window = loaded.state.window;
  state.since_checkpoint = loaded.state.since_checkpoint;
  state.best_evaluation = loaded.state.best_evaluation;
  state.evaluations_since_best = loaded.state.evaluations_since_best;
  if (data_.eval_set() != nullptr) state.owed_evaluation = loaded.state.owed_evaluation;
  state.wall_s = loaded.state.wall_s;
  schedule_before_ = loaded.state.schedule;
  FitToData(state);
  return Status();
}

Status TrainRun::CheckSame(const CheckpointState& now, const CheckpointState& then) const {
  if (request_.allow_different) return Status();
  std::string other_kernel;
  if (now.kernels_sha256 != then.kernels_sha256) {
    constexpr int64_t kMostBytes = 64 << 20;
    const Result<std::string> planned = ReadFile(folder_->File("plan.json"), kMostBytes);
    if (planned.ok()) {
      const std::string plan = PlanToJson(SummarizeJob(job_, executor_->program()));
      other_kernel = FirstOtherKernel(plan, *planned);
    }
  }
  const std::string difference = RunDifference(now, then, other_kernel);
  if (difference.empty()) return Status();
  return InvalidArgument(
      fmt::format("{}: resuming with {}: the result would not be bit-identical. hint: "
                  "--allow-different",
                  folder_->path(), difference));
}

// Recomputes total_steps from the remaining epochs: changed data may change an epoch's length.
void TrainRun::FitToData(CheckpointState& state) {
  Position& position = state.position;
  if (position.next_batch >= data_.steps_per_epoch * options_.accumulate)
    position = {position.epoch + 1, 0};
  if (options_.steps) return;
  const int64_t left = (options_.epochs.value_or(1) - position.epoch) * data_.steps_per_epoch -
                       position.next_batch / options_.accumulate;
  data_.total_steps = state.step + std::max<int64_t>(left, 0);
}

// Stores what now ends the run: epochs, steps, patience; and removes the summary of a run that goes
// on.
Status TrainRun::ForgetEnd(const CheckpointState& start) const {
  RIDGE_ASSIGN_OR_RETURN(const Run run, Run::Open(folder_->path()));
  TrainOptions stored = run.options();
  const auto end_of = [](TrainOptions& o) { return std::tie(o.epochs, o.steps, o.patience); };
  TrainOptions now = options_;
  if (end_of(stored) != end_of(now)) {
    end_of(stored) = end_of(now);
    RIDGE_RETURN_IF_ERROR(
        WriteFileAtomically(folder_->File("options.json"), OptionsToJson(stored)));
  }
  std::error_code ignored;
  if (start.step < data_.total_steps) {
    for (const char* name : {"summary.json", kEvaluationFile})
      std::filesystem::remove(folder_->File(name), ignored);
  }
  return Status();
}

Status TrainRun::ReportStart(const CheckpointState& start) {
  if (request_.resume && !resume_)
    observer_.OnWarning(options_.out + ": no run to resume; starting at step 0");
  RunStart report = {options_.out,
                     resume_,
                     start.step,
                     data_.total_steps,
                     data_.steps_per_epoch,
                     data_.dropped_per_epoch,
                     resume_ ? "" : options_.start};
  const int64_t before = schedule_before_.total_steps;
  if (before > 0 && before != data_.total_steps) {
    report.total_steps_before = before;
    report.lr_before = LearningRate(schedule_before_, start.step);
    report.lr = LearningRate(start.schedule, start.step);
  }
  observer_.OnStart(report);
  return Status();
}

Result<TrainOutcome> TrainRun::Conclude(const LoopResult& result) {
  if (redeal_) {
    RIDGE_RETURN_IF_ERROR(KeepShares());
    return MakeStoppedOutcome(result, RunEnd::kPreempted);
  }
  if (result.killed) return MakeStoppedOutcome(result, RunEnd::kPreempted);
  // Only the rank that leads knows.
  RIDGE_ASSIGN_OR_RETURN(const bool unsaved, ranks_.Any(!result.last_checkpoint.ok()));
  if (unsaved) return MakeStoppedOutcome(result, RunEnd::kCheckpointFailed);
  if (result.preempted) return MakeStoppedOutcome(result, RunEnd::kPreempted);
  TrainOutcome outcome;
  outcome.folder = options_.out;
  outcome.step = result.state.step;
  RIDGE_ASSIGN_OR_RETURN(const bool whole, EvaluateAtEnd(result, outcome.summary));
  if (!whole) return MakeStoppedOutcome(result, RunEnd::kPreempted);
  RIDGE_RETURN_IF_ERROR(Summarize(result, outcome.summary));
  RIDGE_RETURN_IF_ERROR(GatherRanks(result, outcome.summary));
  RIDGE_RETURN_IF_ERROR(ranks_.Same("other parameters after training",
                                    outcome.summary.parameters_sha256, /*hint=*/"",
                                    ErrorCode::kInternal));
  if (!ranks_.leads()) return outcome;
  if (record_) {
    RIDGE_RETURN_IF_ERROR(
        WriteFileAtomically(folder_->File(kEvaluationFile), RecordToJson(*record_)));
  }
  RIDGE_RETURN_IF_ERROR(
      WriteFileAtomically(folder_->File("summary.json"), SummaryToJson(outcome.summary)));
  observer_.OnFinish(outcome.summary);
  return outcome;
}

Result<TrainOutcome> TrainRun::MakeStoppedOutcome(const LoopResult& result, RunEnd end) const {
  TrainOutcome outcome;
  outcome.end = end;
  outcome.folder = options_.out;
  outcome.step = result.state.step;
  outcome.message = end == RunEnd::kPreempted
                        ? fmt::format("stopped after step {}; go on with --resume {}", outcome.step,
                                      outcome.folder)
                        : fmt::format("step {}: the last checkpoint could not be written: {}",
                                      outcome.step, result.last_checkpoint.message());
  return outcome;
}

// Evaluates on the test set, unless the evaluation after the last step was on it.  False when a
// signal stopped it.
Result<bool> TrainRun::EvaluateAtEnd(const LoopResult& result, RunSummary& summary) {
  summary.loss = result.loss;
  record_ = result.record;
  if (result.evaluation) summary.Add(data_.during_name(), *result.evaluation);
  if (data_.report_set() == data_.eval_set()) return true;
  const DoingScope doing(machine_.communicator, {RankWork::kEvaluation, result.state.step});
  Evaluator evaluator(*executor_, data_.report_set(), data_.eval_spec, data_.eval_subject,
                      options_.batch, data_.workers, data_.bad_records, machine_.communicator);
  RIDGE_ASSIGN_OR_RETURN(const std::optional<EvalResult> evaluation, evaluator.Run());
  if (!evaluation) return false;
  observer_.OnEvaluation({result.state.step, result.state.position.epoch, "test", *evaluation});
  summary.Add("test", *evaluation);
  RIDGE_ASSIGN_OR_RETURN(record_, evaluator.Record("test", result.state.step));
  return true;
}

Status TrainRun::Summarize(const LoopResult& result, RunSummary& summary) const {
  RIDGE_ASSIGN_OR_RETURN(summary.parameters_sha256,
                         HashParameters(*executor_, wholes_.get(), machine_.communicator));
  summary.model = options_.model;
  summary.seed = options_.seed;
  summary.steps = result.state.step;
  summary.epochs = result.state.position.epoch;
  summary.wall_s = result.state.wall_s;
  summary.planned = {job_.memory.peak_bytes, job_.memory.arena_bytes, job_.step_s, job_.epoch_s,
                     job_.modelled_step_s};
  summary.planned.input_bytes = PlannedInputBytes(job_);
  summary.measured = {MeasuredPeakBytes(machine_.backend->device()),
                      executor_->arena().resident_bytes(), result.step_s, result.epoch_s};
  summary.measured.input_bytes = MeasuredSlotBytes(*executor_, data_, lengths_, options_.batch) +
                                 machine_.Counted(data_.held_bytes + result.pipeline_bytes);
  summary.device_bytes =
      EndDeviceBytes(machine_, summary.measured.peak_bytes, summary.planned.peak_bytes);
  summary.measured.energy_j = result.energy_j;
  summary.skipped_samples = data_.dropped_per_epoch;
  summary.loss_scaling = result.loss_scaling;
  if (result.stopped_early && result.state.best_evaluation) {
    const BestResult& best = *result.state.best_evaluation;
    summary.stopped_early = {result.state.evaluations_since_best, best.metric, best.value,
                             best.step};
  }
  summary.ridge_version = kRidgeVersion;
  summary.device = machine_.profile.name;
  summary.libraries = machine_.libraries;
  summary.library_paths = machine_.library_paths;
  summary.threads = machine_.threads();
  return Status();
}

// What each rank planned and measured, at all of them.
Status TrainRun::GatherRanks(const LoopResult& result, RunSummary& summary) {
  if (ranks_.size() == 1) return Status();
  if (job_.communication) summary.planned.communication_s = job_.communication->exposed_s;
  summary.measured.communication_s = result.communication_s;
  const RunFigures &planned = summary.planned, &measured = summary.measured;
  RIDGE_ASSIGN_OR_RETURN(
      const auto all,
      ranks_.All({static_cast<double>(planned.peak_bytes), static_cast<double>(measured.peak_bytes),
                  static_cast<double>(planned.arena_bytes),
                  static_cast<double>(measured.arena_bytes), planned.step_s, measured.step_s,
                  result.collective_s}));
  const std::optional<SliceShare> share = ShareOf(executor_->program());
  for (const std::vector<double>& of : all) {
    const auto bytes = [&](size_t i) { return static_cast<int64_t>(of[i]); };
    const auto rank = static_cast<int>(summary.ranks.size());
    const int64_t slices = share ? share->OwnedBy(rank).count() : 1;  // of a mesh: the whole batch
    summary.ranks.push_back({slices, bytes(0), bytes(1), bytes(2), bytes(3), of[4], of[5], of[6]});
  }
  return Status();
}

}  // namespace

Result<TrainOptions> ResolveOptions(const TrainRequest& request, std::vector<std::string>* notes) {
  TrainOptions given = request.options;
  RIDGE_RETURN_IF_ERROR(TakeModelFolder(given, notes));
  if (StartsAnew(request)) return given;
  RIDGE_ASSIGN_OR_RETURN(const Run run, Run::Open(request.options.out));
  RIDGE_ASSIGN_OR_RETURN(TrainOptions merged, MergeResumed(run.options(), given, request.given));
  merged.out = run.path();  // it may have been moved
  return merged;
}

Result<TrainOutcome> Train(const TrainRequest& request, const Machine& machine,
                           TrainObserver& observer) {
  TrainRequest now = request;
  Machine dealt = machine;
  for (;;) {
    auto run = std::make_unique<TrainRun>(now, dealt, observer);
    Result<TrainOutcome> outcome = run->Train();
    if (!outcome.ok() || !run->redeal()) return outcome;
    dealt.dealt = run->redeal()->deal.slices;
    now = run->GoingOn();
    run.reset();
    ForgetPeakMemory();  // the next plan is of its own
  }
}

}  // namespace ridge
