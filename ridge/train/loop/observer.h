// TrainObserver: receives the events of a run.  The command line prints them; tests record them.
//
// All calls come from the thread that trains, between steps.
#pragma once
#include <optional>
#include <string>

#include "ridge/core/device_counters.h"
#include "ridge/train/job/job.h"
#include "ridge/train/load/model_source.h"
#include "ridge/train/loop/evaluation.h"
#include "ridge/train/store/summary.h"

namespace ridge {

struct RunStart {
  std::string folder;
  bool resumed = false;
  int64_t step = 0;  // updates already done
  int64_t total_steps = 0;
  int64_t steps_per_epoch = 0;
  int64_t dropped_per_epoch = 0;  // samples
  std::string weights_of;         // checkpoint of a new run's initial weights; "" for none
  // Of a resumed run with another total: the total before (else 0), and the learning rate of the
  // next step by the schedule of that total and by the present one.
  int64_t total_steps_before = 0;
  double lr_before = 0, lr = 0;
};

// After each update.
struct StepReport {
  int64_t step = 0;      // updates done, of total_steps
  int64_t epoch = 0;     // from 1
  double step_loss = 0;  // of this update
  double loss = 0;       // these four: over the window since the last line of metrics.jsonl
  std::optional<double> accuracy;
  double samples_s = 0;
  double input_wait = 0;           // 0 to 1
  StageSeconds input_stages = {};  // of the workers that read; zeros where reading is fast
  DeviceCounters gpu = {};         // since that line; empty: there is none
  double lr = 0;
  double eta_s = 0;         // of the remaining training steps
  int64_t bad_records = 0;  // samples skipped so far
  // Of several ranks, over about the last 50 steps (RankShares).
  std::optional<double> communication;
  int slowest_rank = 0;
};

// With `--shares auto`: the run goes on with other shares.
struct SharesReport {
  int64_t step = 0;                            // updates done
  std::vector<int64_t> slices, slices_before;  // of a batch, by rank
  double slowest_s = 0, slowest_before_s = 0;  // compute of the slowest rank: foreseen, measured
};

struct EvaluationReport {
  int64_t step = 0;
  int64_t epoch = 0;  // from 1
  std::string data;   // "validation" or "test"
  EvalResult result;
};

class TrainObserver {
 public:
  virtual ~TrainObserver() = default;
  // Called first, after the model is loaded.
  virtual void OnModel(const ModelNotes&) {}
  // Called before the run.  The returned text becomes plan.txt of the run folder if it is not
  // empty.
  virtual std::string OnPlanned(const PlannedJob& /*job*/, const PlanSummary& /*summary*/) {
    return "";
  }
  // Called instead when the job does not fit.  Train() fails with the returned status.
  virtual Status OnRefused(const PlannedJob& job) { return CheckFits(job); }
  virtual void OnStart(const RunStart&) {}
  virtual void OnStep(const StepReport&) {}
  virtual void OnEvaluation(const EvaluationReport&) {}
  virtual void OnCheckpoint(int64_t /*step*/, const std::string& /*path*/) {}
  virtual void OnShares(const SharesReport&) {}
  virtual void OnWarning(const std::string& /*text*/) {}
  virtual void OnFinish(const RunSummary&) {}
};

}  // namespace ridge
