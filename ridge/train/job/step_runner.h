// StepRunner: drives the updates of a training program.
//
// One update is one execution of `train`, or `accumulate` of `micro` and one of `update`.  Batches
// come from the input pipeline (StartLoader); without it the batch that is in input slot 0 at the
// first update serves every step.  An update allocates nothing.  Not thread-safe.
#pragma once
#include <functional>
#include <memory>

#include "ridge/runtime/executor.h"
#include "ridge/runtime/pipeline_runner.h"
#include "ridge/train/job/job.h"
#include "ridge/train/job/scalar_inputs.h"

namespace ridge {

// The inputs of a training batch as they are planned: with those that a slice reads of the whole
// batch, where only a share of it is here.
Result<BatchSpec> InputsOf(const Executor& executor, BatchSpec spec, const Source& train);

class StepRunner {
 public:
  // REQUIRES: `executor` runs the job's program and outlives this.
  StepRunner(Executor& executor, const PlannedJob& job);

  // Fills the input slots with training data in the background, from `start` on.
  Status StartLoader(const JobData& data, const Position& start = {});
  BatchLoader& loader() { return *loader_; }  // REQUIRES: StartLoader
  const BatchLoader& loader() const { return *loader_; }

  struct Hooks {
    // Executes a StepPlan instead of Executor::Run.
    std::function<Status(int step, int slot)> execute = {};
    // Asked before each batch whether to discard the update.
    std::function<bool()> stop = {};
  };
  void SetHooks(Hooks hooks) { hooks_ = std::move(hooks); }

  // Values of the program's scalar inputs.
  struct Scalars {
    double lr = 0;
    int64_t updates = 0;  // completed ones
    uint64_t seed = 0;
  };
  struct Update {
    double loss = 0;          // mean over the batches
    double correct = 0;       // sum over the batches; 0 unless the model is a classifier
    double wait_s = 0;        // for batches, and on a device for what crosses to it
    double seconds = 0;       // with the wait
    double collective_s = 0;  // in sums over ranks
    int64_t samples = 0;      // of all batches
    int form = 0;             // LoadedBatch::form of the last batch
    bool stopped = false;     // by Hooks::stop; the other fields are incomplete
  };
  // The next update.  Fails as Executor::Run and BatchLoader::Next do.
  Result<Update> Run(const Scalars& scalars);

  // The StepPlan that runs on each batch of the whole length: `train` or `micro`.
  int batch_step() const { return forms_.back().step; }

 private:
  Status RunMicroBatches(const Scalars& scalars, Update& update);
  Status RunStages(const Scalars& scalars, Update& update);
  Result<int> TakeBatch(const Scalars& scalars, int64_t index, Update& update);
  Status RunBatch(const Scalars& scalars, int64_t index, Update& update);
  Status Execute(int step, int slot);

  Executor& executor_;
  ScalarInputs scalar_inputs_;
  const int64_t batch_, accumulate_;
  const uint64_t data_seed_;
  const bool classifier_;
  // A form of batches, the whole length last.
  struct Form {
    int step = 0;  // its StepPlan
    int64_t batch = 0;
  };
  static std::vector<Form> FormsOf(const Executor& executor, const PlannedJob& job);
  void SendBatch();
  const std::vector<Form> forms_;
  const int update_step_;                   // -1: `train` updates the parameters itself
  bool has_batch_ = false;                  // on the device, without a loader
  std::unique_ptr<PipelineRunner> stages_;  // null: the rank runs whole batches
  Hooks hooks_;
  std::unique_ptr<BatchLoader> loader_;
};

}  // namespace ridge
