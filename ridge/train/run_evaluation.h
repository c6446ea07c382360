// EvaluateRun: `ridge eval RUN --data SPEC`: the network of a run on any data.
#pragma once
#include <string>
#include <vector>

#include "ridge/train/evaluation.h"
#include "ridge/train/machine.h"
#include "ridge/train/options.h"

namespace ridge {

struct EvalRequest {
  std::string run;   // folder
  std::string data;  // its test split if it has one, else all of it
};

struct EvalOutcome {
  EvalResult result;
  int64_t step = 0;                   // of the checkpoint
  std::vector<std::string> warnings;  // checkpoints that could not be used
};

// The options a run was started with.  Fails with kInvalidData when the folder holds no run.
Result<TrainOptions> ReadRunOptions(const std::string& folder);

// Uses the newest good checkpoint.  Fails with kInvalidData (no run, no checkpoint, bad data).
Result<EvalOutcome> EvaluateRun(const EvalRequest& request, const Machine& machine);

}  // namespace ridge
