// EvaluateRun: `ridge eval RUN --data SPEC`: evaluates a run's network, or a model, on any data.
#pragma once
#include <string>
#include <vector>

#include "ridge/train/loop/evaluation.h"
#include "ridge/train/options/machine.h"
#include "ridge/train/options/options.h"

namespace ridge {

struct EvalRequest {
  std::string run;                    // folder; empty: `model`
  std::string data;                   // its test split if it has one, else all of it
  std::string checkpoint = "newest";  // of a run (Checkpoints::Find)
  // Of a model that was not trained here: model, batch, loss, dims, weights.
  TrainOptions model = {};
};

struct EvalOutcome {
  EvalResult result;
  EvaluationRecord record;
  int64_t step = 0;                   // of the checkpoint; 0 without a run
  std::vector<std::string> warnings;  // checkpoints that could not be used; notes on the data
};

// Uses the requested checkpoint of a run; a model has the initial values of a training.  Fails with
// kInvalidData (no run, no checkpoint, bad data).
Result<EvalOutcome> EvaluateRun(const EvalRequest& request, const Machine& machine);

}  // namespace ridge
