// Train: a whole run, from options to a trained network in its run folder.
//
// Where we come from: cli/train.cc read the options.  What is known here: everything about the run.
// Where it goes next: job.cc plans, training_loop.cc executes, checkpoint.cc saves.
//
//   LoadModel -> OpenJobData -> PlanJob -> CheckFits -> Executor -> initial values or a checkpoint
//   -> TrainingLoop -> summary.json
#pragma once
#include <set>
#include <string>

#include "ridge/train/loop/observer.h"
#include "ridge/train/options/machine.h"
#include "ridge/train/options/options.h"

namespace ridge {

enum class RunEnd {
  kCompleted,
  kPreempted,         // stopped by a signal, checkpoint written; exit code 75
  kCheckpointFailed,  // trained to the end, but the last checkpoint could not be written; exit 1
  kWasFinished,       // a resumed run that had ended before; it stays as it is
};

struct TrainOutcome {
  RunEnd end = RunEnd::kCompleted;
  std::string folder;
  int64_t step = 0;     // updates done
  RunSummary summary;   // kCompleted, kWasFinished
  std::string message;  // all but kCompleted: what happened and what to do
};

struct TrainRequest {
  TrainOptions options;
  // Continue options.out, or the newest run when that is empty.  When options.out holds no run and
  // the options name a model and data, a run starts there: one command serves every restart.
  bool resume = false;
  bool allow_different = false;  // resume on another CPU type, number of threads, or other data
  std::set<std::string> given;   // JSON keys of the options that the user gave
  // If options.model is a run: its checkpoint that the new run starts from (Checkpoints::Find).
  std::string start_checkpoint = "newest";
  // Budget for timing kernels before the plan is shown; whole updates get three times as much; 0:
  // none.
  double rehearse_s = 0.1;
  // For tests: stop as if preempted (with a checkpoint) or killed (without) after so many steps.
  int64_t preempt_after_step = -1;
  int64_t kill_after_step = -1;
  double slower_s = 0;  // for tests: a step takes so much longer for each slice of this rank
};

// The options that choose the machine (device, threads): those of the run when resuming.  A model's
// public folder becomes what it stands for (TakeModelFolder); `notes` may be null.  Fails as it and
// with kInvalidArgument, kInvalidData: no such run, conflicting options.
Result<TrainOptions> ResolveOptions(const TrainRequest& request,
                                    std::vector<std::string>* notes = nullptr);

// Installs signal handlers while it runs (StopSignal); one process at a time trains in a folder.
// With machine.communicator all its ranks call this with equal requests and machines, and get equal
// outcomes; sums are a tree's.  Rank 0 alone writes the run folder, which the others only read, and
// tells `observer` what happens.  Ranks that would not train the same fail with kInvalidArgument
// before the first step.  A rank that fails alone must leave the job, so that the others fail too.
// When options.model is a run, its model, model options and weights are used.  A resumed run may
// have another number of epochs or steps: it goes on until then with the schedule of the new
// number, and its options.json has it from then on.  Fails with kInvalidArgument (also for a
// resumed run that is past --epochs), kInvalidData, kInvalidModel, kUnsupported, kOutOfMemory
// (refused before the first step), kFailed (the loss is not finite), kUnavailable (the run folder
// can't be made).
Result<TrainOutcome> Train(const TrainRequest& request, const Machine& machine,
                           TrainObserver& observer);

}  // namespace ridge
