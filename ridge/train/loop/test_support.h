// For tests that train: a tiny request, and an observer that records.
#pragma once
#include <string>
#include <vector>

#include "ridge/core/test_folder.h"
#include "ridge/train/loop/trainer.h"
#include "ridge/train/options/test_machine.h"

namespace ridge {

struct Recorder : TrainObserver {
  std::vector<double> losses;
  std::vector<EvaluationReport> evaluations;
  std::vector<int64_t> checkpoints;
  std::vector<std::string> warnings;
  RunStart start;

  void OnStart(const RunStart& s) override { start = s; }
  void OnStep(const StepReport& r) override { losses.push_back(r.loss); }
  void OnEvaluation(const EvaluationReport& r) override { evaluations.push_back(r); }
  void OnCheckpoint(int64_t step, const std::string&) override { checkpoints.push_back(step); }
  void OnWarning(const std::string& text) override { warnings.push_back(text); }
};

// A tiny network; the test sets the data.
inline TrainRequest TinyRequest(const std::string& out) {
  TrainRequest request;
  request.options.model = "mlp:hidden=8,layers=1,inputs=12,classes=3";
  request.options.batch = 8;
  request.options.out = out;
  request.rehearse_s = 0;
  return request;
}

}  // namespace ridge
