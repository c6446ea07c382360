// Run: a run folder for reading.
//
// Every verb that takes a RUN opens it here.  Reading creates and changes nothing; the training
// itself writes, through RunFolder.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ridge/core/tensor.h"
#include "ridge/train/options/options.h"
#include "ridge/train/store/checkpoint.h"
#include "ridge/train/store/summary.h"

namespace ridge {

inline constexpr char kRunsFolder[] = "runs";  // holds the runs that have no --out

class Run {
 public:
  // `folder`, or the newest run under runs/ when it is empty.
  // Fails with kInvalidData: there is no run, or its options.json cannot be read.
  static Result<Run> Open(const std::string& folder);
  static bool Exists(const std::string& folder);  // has an options.json

  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }
  const TrainOptions& options() const { return options_; }

  // What its model is loaded from: the run's copy of a file, or a built-in model with the
  // sizes that its data gave, `instead` first.
  std::string ModelSource(const std::vector<ModelSize>& instead = {}) const;

  Checkpoints checkpoints() const { return Checkpoints(File("checkpoints")); }

  // Nothing when the run has not ended.  Fails with kInvalidData when it cannot be read.
  Result<std::optional<RunSummary>> Summary() const;

  // The lines of metrics.jsonl; the last one is incomplete when the run was killed.
  std::vector<std::string> MetricsLines() const;

 private:
  Run(std::string path, TrainOptions options)
      : path_(std::move(path)), options_(std::move(options)) {}

  std::string path_;
  TrainOptions options_;
};

// The tensors of a checkpoint by name (parameters, statistics, optimizer state), mapped from its
// files, when `model` is a run; none for other models.  `warnings` are LoadedCheckpoint's.
// Fails as Checkpoints::Find does.
Result<std::map<std::string, Tensor>> TrainedTensors(const std::string& model,
                                                     const std::string& checkpoint,
                                                     std::vector<std::string>* warnings = nullptr);

}  // namespace ridge
