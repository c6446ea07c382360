// SampleCounts: the part of an evaluation that looks at single samples: the classes of each, and
// the errors of a regression.
//
// Reads the outputs `logits`, `said`, `prediction`, `detections`, `spelled` or `written` of the
// step `eval` (training_graph.h); where it has none, nothing is counted.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ridge/data/batch_loader.h"
#include "ridge/dist/agreement.h"
#include "ridge/observe/average_precision.h"
#include "ridge/observe/class_counts.h"
#include "ridge/observe/edit_counts.h"
#include "ridge/observe/evaluation_record.h"
#include "ridge/observe/regression_sums.h"
#include "ridge/runtime/executor.h"
#include "ridge/train/job/job_data.h"

namespace ridge {

class SampleCounts {
 public:
  // REQUIRES: `executor` outlives this; `spec` has the inputs that `subject` names.
  SampleCounts(Executor& executor, int step, const BatchSpec& spec, const EvalSubject& subject);

  void Clear();

  // Counts the valid samples of a batch that `step` has just run on; the first of them is number
  // `first` of the source.
  Status Add(const LoadedBatch& batch, int64_t first);

  // Adds what the other ranks have counted; then all have the same.
  Status Share(Agreement& ranks);

  // Of all samples since Clear(); what is no number is left out.
  NamedMetrics Metrics(double loss) const;

  // Adds classes, confusion matrix and errors.  Reads those samples again.
  Status Describe(const Source& source, EvaluationRecord& record) const;

 private:
  // Rows [batch, width] of numbers.
  struct Rows {
    DType dtype = DType::kF32;
    int64_t width = 1;
    const void* data = nullptr;
    void Read(int64_t row, std::span<double> to) const;
    std::vector<int64_t> Integers(int64_t row) const;
  };
  bool HasOutput(const char* name) const { return executor_.HasOutput(step_, name); }
  Result<Rows> OutputRows(const char* name);
  Rows InputRows(const std::string& name, int slot) const;
  Status AddClasses(const LoadedBatch& batch, int64_t first);
  Status AddPixels(const LoadedBatch& batch);
  Status AddErrors(const LoadedBatch& batch);
  Status AddTexts(const LoadedBatch& batch);
  Status AddWritten(const LoadedBatch& batch);
  Status AddBoxes(const LoadedBatch& batch);
  void DescribeBoxes(EvaluationRecord& record) const;

  Executor& executor_;
  const int step_;
  const BatchSpec spec_;
  const EvalSubject subject_;
  std::optional<ClassCounts> classes_;
  std::optional<RegressionSums> errors_;
  std::optional<EditCounts> edits_;
  std::optional<AveragePrecision> precision_;
  std::vector<double> row_, target_;  // of one sample
};

// The first field of the sample that is a picture of bytes, u8[H,W], u8[H,W,C] or u8[C,H,W] with 1
// or 3 channels, as the means of blocks of pixels where it is too large; nothing without such a
// field.
Result<std::optional<Thumbnail>> ReadThumbnail(const Source& source, int64_t index);

}  // namespace ridge
