// TrainingLoop: the updates of a run, from its position to its end.
//
// One update is one execution of `train`, or `accumulate` of `micro` and one of `update`.
// Checkpoints and evaluations come between updates, in this order: an evaluation may take minutes,
// and a signal that stops it must lose no updates.  An update allocates nothing.
//
// With several ranks all of them run the loop; they stop at the same step, and one leads: it writes
// checkpoints and the log.  Losses, metrics and evaluations are those of all ranks together.
//
// The loop checks for signals between updates, batches of an evaluation, and micro-batches.  A
// stopped update is discarded, unless the model has statistics: its batches have changed them,
// which cannot be undone.
#pragma once
#include <functional>
#include <memory>
#include <optional>

#include "ridge/dist/agreement.h"
#include "ridge/train/job/job.h"
#include "ridge/train/job/step_runner.h"
#include "ridge/train/loop/better_deal.h"
#include "ridge/train/loop/counter_watch.h"
#include "ridge/train/loop/evaluation.h"
#include "ridge/train/loop/observer.h"
#include "ridge/train/loop/rank_shares.h"
#include "ridge/train/loop/step_times.h"
#include "ridge/train/store/checkpoint.h"
#include "ridge/train/store/parallel_writer.h"
#include "ridge/train/store/run_log.h"
#include "ridge/train/store/value_histograms.h"

namespace ridge {

// All pointers outlive the loop.  `checkpoints` is nullptr at a rank that does not lead.
struct LoopRequest {
  const PlannedJob* job = nullptr;
  const JobData* data = nullptr;
  Executor* executor = nullptr;  // variables hold the state of `start`
  const CheckpointWriter* checkpoints = nullptr;
  RunLog* log = nullptr;
  TrainObserver* observer = nullptr;
  Communicator* communicator = nullptr;  // of the ranks that train together; nullptr: one
  WholeVariables* wholes = nullptr;      // of ranks that have parts of variables
  std::string folder;                    // of the run, at all ranks
  CheckpointState start;                 // of a new run, or loaded
  // Called after each checkpoint; may be empty.
  std::function<void(int64_t step)> on_checkpoint = {};
  int64_t preempt_after_step = -1;  // as TrainRequest
  int64_t kill_after_step = -1;
  double slower_s = 0;
  // With `--shares auto`: seconds from the start to the loop; 0: the deal of the slices stays.
  double start_s = 0;
  CounterSource* counters = nullptr;  // of the device; nullptr: it tells nothing
};

// The slices are dealt anew.
struct Redeal {
  int64_t step = 0;             // updates done
  std::vector<RankRate> ranks;  // before
  Deal deal;
};

struct LoopResult {
  bool preempted = false;
  bool killed = false;
  bool stopped_early = false;              // by --patience
  std::optional<Redeal> redeal;            // the run goes on with it from its newest checkpoint
  Status last_checkpoint;                  // result of the last attempt
  CheckpointState state;                   // at the end
  std::optional<EvalResult> evaluation;    // the last one
  std::optional<EvaluationRecord> record;  // of an evaluation after the last step
  double step_s = 0;                       // median of the updates after the first 10
  double collective_s = 0;                 // the same, in collectives
  double communication_s = 0;              // RankShares::communication_s
  // Mean over the epochs that ran completely, with evaluations and without checkpoints.
  std::optional<double> epoch_s;
  double loss = 0;  // of the last report
  std::optional<LossScaling> loss_scaling = {};
  // Of the pipelines, measured: those of training and of evaluations, one of which runs at a time.
  int64_t pipeline_bytes = 0;
  std::optional<double> energy_j;  // of the device, from the first update to the last checkpoint
};

class TrainingLoop {
 public:
  explicit TrainingLoop(const LoopRequest& request);
  ~TrainingLoop();

  // Runs once.  Fails with kFailed and the first non-finite node when the loss is not finite.
  Result<LoopResult> Run();

 private:
  bool Done() const { return state_.step >= data_.total_steps || OutOfPatience(); }
  bool OutOfPatience() const;
  bool Stopped() const { return result_.preempted || result_.killed || result_.redeal; }
  bool MayGiveUpUpdate() const;
  std::vector<double> MeanOfForms() const;
  StepRunner::Hooks Hooks();
  Result<bool> StopRequested();
  Status LookAtShares();
  Result<std::optional<Redeal>> MeasuredRedeal();

  Status RunUpdate();
  Status RunStep(int step, int slot);
  Status RunInTime(int step, int slot);
  Status LossFailure(const Status& status, int step, int slot);
  Status StageLossFailure(const Status& status) const;
  void Advance();
  int64_t Epoch() const;

  Status AfterUpdate();
  bool EvaluationDue() const;
  Result<bool> CheckpointDue();
  void ReportStep();
  MetricsReport WindowReport() const;
  StageSeconds WindowStages() const;
  Status Report();
  Result<std::optional<LossScaling>> Scaling();
  int64_t PipelineBytes() const;
  void WriteHistograms();
  Status AddHistograms();
  Status Serve();
  Status Release();
  Status Evaluate();
  void LogEvaluation(const EvalResult& evaluation) const;
  void CountEvaluation(const EvalResult& evaluation);
  void ChooseByEvaluation(const EvalResult& evaluation);
  bool HasCheckpoint() const;
  Status SaveCheckpoint(bool due);
  Status WriteCheckpoint(bool best);
  void Warn(const char* what, const Status& status);
  Status Finish();
  void StartEpochClock();
  void StopEpochClock();

  const PlannedJob& job_;
  const JobData& data_;
  Executor& executor_;
  const LoopRequest request_;
  StepRunner runner_;
  Agreement ranks_;
  const CheckpointTensors tensors_;
  std::optional<ParallelWriter> writer_;  // where several ranks write checkpoints
  ValueHistograms histograms_;
  const std::vector<double> mean_of_form_;  // by LoadedBatch::form
  CheckpointState state_;
  std::unique_ptr<Evaluator> evaluator_;
  StepTimes times_, collective_times_;
  RankShares shares_;
  CounterWatch counters_;
  StepTimes compute_times_;  // since the last look at the shares
  LoopResult result_;
  MetricsReport last_report_;
  StageSeconds stages_before_;  // of the loader, at the last report
  double started_s_ = 0, wall_before_s_ = 0;
  double lr_ = 0;         // of the current update
  double step_loss_ = 0;  // of the last update, as the next two
  double step_s_ = 0, collective_s_ = 0;
  bool epoch_ended_ = false;  // with the last update
  double epoch_started_s_ = 0, epochs_s_ = 0;
  double saving_s_ = 0;  // of checkpoints and histograms, within the epoch
  int64_t epochs_timed_ = 0;
  bool epoch_is_whole_ = false;
  bool told_of_scale_ = false;  // that it is low
  int64_t saved_step_ = -1, evaluated_step_ = -1;
  double saved_s_ = 0;  // time of the last checkpoint, or of the start
};

}  // namespace ridge
