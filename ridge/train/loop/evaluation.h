// Evaluator: loss and accuracy over a whole data set, each sample counted once.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ridge/data/batch_loader.h"
#include "ridge/runtime/executor.h"
#include "ridge/train/store/summary.h"

namespace ridge {

// Runs the StepPlan `eval` in the input slots of training, whose loader must be stopped meanwhile.
class Evaluator {
 public:
  // `workers`: threads that read slow samples; `bad_records` may be null.
  // REQUIRES: the executor outlives this and has a StepPlan `eval`.
  Evaluator(Executor& executor, SourcePtr source, BatchSpec spec, int64_t batch, int workers,
            BadRecordsPtr bad_records);

  // nullopt when a StopSignal ended it early.
  Result<std::optional<EvalResult>> Run();

 private:
  Status Start();
  Status AddBatch(const LoadedBatch& batch);
  EvalResult Finish(double seconds);
  Status Add(const char* output, double& sum);
  bool Has(const char* name) const { return executor_.HasOutput(step_, name); }

  Executor& executor_;
  const SourcePtr source_;
  const BatchSpec spec_;
  const int64_t batch_;
  const int workers_;
  const BadRecordsPtr bad_records_;
  const int step_;
  const bool classifier_;
  std::unique_ptr<BatchLoader> loader_;  // made by the first Run
  double loss_sum_ = 0, loss_weight_sum_ = 0, correct_sum_ = 0, label_sum_ = 0, weight_sum_ = 0;
};

}  // namespace ridge
