// Evaluator: loss, accuracy and metrics over a whole data set, each sample counted once.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ridge/data/batch_loader.h"
#include "ridge/runtime/executor.h"
#include "ridge/train/loop/sample_counts.h"
#include "ridge/train/store/summary.h"

namespace ridge {

// Runs the StepPlan `eval` in the input slots of training, whose loader must be stopped meanwhile.
class Evaluator {
 public:
  // `workers`: threads that read slow samples; `bad_records` may be null.  `communicator`: of the
  // ranks among which the batches are shared; all of them evaluate, and get the same result.
  // REQUIRES: the executor outlives this and has a StepPlan `eval`.
  Evaluator(Executor& executor, SourcePtr source, BatchSpec spec, const EvalSubject& subject,
            int64_t batch, int workers, BadRecordsPtr bad_records,
            Communicator* communicator = nullptr);

  // nullopt when a StopSignal ended it early.
  Result<std::optional<EvalResult>> Run();

  // Of its loader, measured.
  BatchLoader::HeldBytes held_bytes() const {
    return loader_ != nullptr ? loader_->held_bytes() : BatchLoader::HeldBytes{};
  }

  // What the last run tells, with its errors read from the source; `data` names the source.
  // REQUIRES: Run() has given a result.
  Result<EvaluationRecord> Record(const std::string& data, int64_t step) const;

 private:
  Status Start();
  Status AddBatch(const LoadedBatch& batch);
  Result<EvalResult> Finish(double seconds);
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
  Agreement ranks_;
  const std::optional<SliceShare> share_;  // of each batch
  SampleCounts counts_;
  EvalResult result_;                    // of the last run
  std::unique_ptr<BatchLoader> loader_;  // made by the first Run
  double loss_sum_ = 0, loss_weight_sum_ = 0, correct_sum_ = 0, label_sum_ = 0, weight_sum_ = 0;
};

}  // namespace ridge
