// Run: a run folder for reading.
//
// Every verb that takes a RUN opens it here.  Reading creates and changes nothing; the training
// itself writes, through RunFolder.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ridge/core/tensor.h"
#include "ridge/train/options/options.h"
#include "ridge/train/store/checkpoint.h"

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

  // What its model is loaded from: the run's copy of a file, or the name of a built-in model.
  std::string ModelSource() const;

  Checkpoints checkpoints() const { return Checkpoints(File("checkpoints")); }

  // The names of the classes 0, 1, ... (classes.json); none when its data have no names.
  // Fails with kInvalidData when the file cannot be read.
  Result<std::vector<std::string>> ClassNames() const;

  // The lines of metrics.jsonl; the last one is incomplete when the run was killed.
  std::vector<std::string> MetricsLines() const;

 private:
  Run(std::string path, TrainOptions options)
      : path_(std::move(path)), options_(std::move(options)) {}

  std::string path_;
  TrainOptions options_;
};

// The text of classes.json.  Bytes that are no UTF-8 become U+FFFD.
std::string NamesToJson(const std::vector<std::string>& names);

// The tensors of a checkpoint by name (parameters, statistics, optimizer state), mapped from its
// files, when `model` is a run; none for other models.  `warnings` are LoadedCheckpoint's.
// Fails as Checkpoints::Find does.
Result<std::map<std::string, Tensor>> TrainedTensors(const std::string& model,
                                                     const std::string& checkpoint,
                                                     std::vector<std::string>* warnings = nullptr);

}  // namespace ridge
