// BenchJob: a training step that is ready to be timed: planned, rehearsed, with initial values and
// data.
//
// Without data one random batch stays in the input slot the whole time; with data batches come
// through the input pipeline, as in a training.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "ridge/train/job/job.h"
#include "ridge/train/job/step_runner.h"

namespace ridge {

class BenchJob {
 public:
  // `run` is a run folder that holds the model, or empty: options.model.
  // Fails with kInvalidArgument for accumulated gradients, and as planning does.
  static Result<std::unique_ptr<BenchJob>> Create(const TrainOptions& options,
                                                  const std::string& run, double rehearse_s,
                                                  const Machine& machine);

  // One random batch, as `--data synthetic` makes it.
  Status FillBatch();
  // Switches to batches of options.data, filled in the background.
  Status StartLoader();

  // The next update.  REQUIRES: FillBatch() or StartLoader().
  Result<StepRunner::Update> RunStep();

  const Graph& forward() const { return *forward_; }
  const PlannedJob& job() const { return job_; }
  Executor& executor() { return *executor_; }
  int step_index() const { return runner_->batch_step(); }
  const StepPlan& plan() const { return *executor_->program().Find("train"); }

 private:
  BenchJob() = default;

  std::optional<Graph> forward_;
  std::optional<DataSplits> data_;  // if loading the model opened it
  PlannedJob job_;
  std::unique_ptr<Executor> executor_;
  std::optional<StepRunner> runner_;
  int64_t done_ = 0;
};

// FLOPs of matmuls and convolutions of a training step of the graph as built, forward and backward,
// before the passes.
Result<double> TrainingFlops(const Graph& forward, const OptimizerOptions& optimizer);

}  // namespace ridge
