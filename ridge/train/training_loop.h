// TrainingLoop: the steps of a run, from its position to its end.
//
// One update is one execution of `train`, or `accumulate` of `micro` and one of `update`.
// Evaluations and checkpoints come between updates.  In a step nothing is allocated.
#pragma once
#include <memory>
#include <optional>

#include "ridge/train/checkpoint.h"
#include "ridge/train/evaluation.h"
#include "ridge/train/job.h"
#include "ridge/train/observer.h"
#include "ridge/train/run_log.h"
#include "ridge/train/step_times.h"

namespace ridge {

struct LoopRequest {
  const PlannedJob* job = nullptr;
  const JobData* data = nullptr;
  Executor* executor = nullptr;
  const CheckpointFolder* checkpoints = nullptr;
  RunLog* log = nullptr;
  TrainObserver* observer = nullptr;
  CheckpointState start;  // of a new run or a loaded checkpoint
  int64_t preempt_after_step = -1;
  int64_t kill_after_step = -1;
};

struct LoopResult {
  bool preempted = false;
  bool killed = false;                   // kill_after_step, for tests
  Status last_checkpoint;                // of the last one that was tried
  CheckpointState state;                 // at the end
  std::optional<EvalResult> evaluation;  // the last one, when it was made at the last step
  double step_s = 0;                     // median
  std::optional<double> epoch_s;         // mean of the epochs that were run as a whole
  double loss = 0;                       // mean of the last report
};

class TrainingLoop {
 public:
  explicit TrainingLoop(const LoopRequest& request);
  ~TrainingLoop();
  // Fails with kFailed and the first non-finite node when the loss is not finite.
  Result<LoopResult> Run();

 private:
  Status Start();
  Status RunUpdate();
  Status RunMicro(int64_t micro, double& loss);
  void WriteScalars(int slot, int64_t first_sample);
  void WriteScalar(const char* name, int slot, double value);
  Status LossFailure(const Status& status, int step, int slot);
  double ReadOutput(int step, const char* name) const;
  void FinishStep(double loss, double seconds);
  void Report();
  Status AfterUpdate();
  Status FinishEpoch();
  Status Evaluate();
  void SaveCheckpoint();
  bool CheckpointDue(bool epoch_ended) const;
  bool EvaluationDue(bool epoch_ended) const;
  void NoteBest(const EvalResult& result);
  bool Done() const { return state_.step >= data_.total_steps; }
  int64_t Epoch() const;

  const PlannedJob& job_;
  const JobData& data_;
  Executor& executor_;
  const LoopRequest request_;
  const int train_step_, micro_step_, update_step_;
  const CheckpointTensors tensors_;
  CheckpointState state_;
  std::unique_ptr<BatchLoader> loader_;
  std::unique_ptr<Evaluator> evaluator_;
  StepTimes times_;
  LoopResult result_;
  double started_s_ = 0, wall_before_s_ = 0;
  double lr_ = 0;
  double wait_s_ = 0, correct_ = 0;  // of the current update
  double epoch_started_s_ = 0, epochs_s_ = 0;
  int64_t epochs_timed_ = 0;
  bool epoch_is_whole_ = false;
  int64_t saved_step_ = -1, evaluated_step_ = -1;
};

}  // namespace ridge
