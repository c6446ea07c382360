// TrainObserver of the command line: the plan and the result on stdout, progress on stderr.
#pragma once
#include <string>

#include "ridge/cli/train_flags.h"
#include "ridge/observe/metrics.h"
#include "ridge/report/progress.h"
#include "ridge/train/loop/observer.h"
#include "ridge/train/options/machine.h"
#include "ridge/train/store/receipts.h"

namespace ridge::cli {

// "epoch 1, step 40: validation accuracy 91.2 %, loss 0.3121" of a report with an evaluation.
std::string EvaluationLine(const MetricsReport& report);
// "test accuracy 91.2 %, loss 0.312 after 40 steps in 3.1 s".
std::string ResultLine(const RunSummary& summary);
// Of a run that --patience ended: that it did; else "".
std::string EarlyStopLine(const RunSummary& summary);

class CommandLineObserver : public TrainObserver {
 public:
  struct Options {
    Terminal out, err;  // of stdout and stderr
    ProgressMode progress = ProgressMode::kAuto;
    bool quiet = false, verbose = false;
    bool receipts = true;  // read and write them
  };
  // `machine` must outlive the observer.
  CommandLineObserver(const Options& options, const Machine& machine);

  void OnModel(const ModelNotes& notes) override;
  std::string OnPlanned(const PlannedJob& job, const PlanSummary& summary) override;
  Status OnRefused(const PlannedJob& job) override;
  void OnStart(const RunStart& start) override;
  void OnStep(const StepReport& report) override;
  void OnEvaluation(const EvaluationReport& report) override;
  void OnCheckpoint(int64_t step, const std::string& path) override;
  void OnShares(const SharesReport& report) override;
  void OnWarning(const std::string& text) override;
  void OnFinish(const RunSummary& summary) override;

  void EndProgress() { progress_.Finish(); }  // before anything else is printed

 private:
  void Say(const std::string& line);  // unless quiet
  void KeepReceipt(const RunSummary& summary);

  const Options options_;
  const Machine& machine_;
  Progress progress_;
  RunStart start_;
  Receipt receipt_;  // of the run; its figures come at the end
};

}  // namespace ridge::cli
