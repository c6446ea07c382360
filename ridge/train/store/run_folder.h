// RunFolder: the folder that a training writes; Run (run.h) reads it.
//
//   options.json  plan.txt  plan.json  metrics.jsonl  events.out.tfevents.*
//   checkpoints/step-<n>/  checkpoints/best  trace.json on request  summary.json on completion
//   model.ridge   when the model is a graph in text form: the run needs no other file
//   kernels.json  with --kernels tuned: the measured seconds that chose its kernels
//   model.onnx    when it is an ONNX file, with its external data beside it
//   preprocessing.json  class names; of tables columns, categories, means; of pictures size and
//                 normalization (preprocessing_file.h)
//   tokenizer/    copies of the tokenizer's files, for runs on text
//   evaluation.json  metrics of the last evaluation (observe/evaluation_record.h)
//   bad_records.jsonl  samples that were skipped (bad_records_file.h)
//   status.json   what became of the run (run_status.h)
//   run.lock      held by the process that trains
#pragma once
#include <string>

#include "ridge/core/file_lock.h"
#include "ridge/core/status.h"

namespace ridge {

class RunFolder {
 public:
  // Creates `out`, or runs/<model>-<n> with the next free n when `out` is empty.
  // Fails with kInvalidArgument when `out` holds a run, kUnavailable when it can't be created.
  static Result<RunFolder> Create(const std::string& out, const std::string& model);

  // The folder of a run that goes on.  Fails with kUnavailable when it can't be written.
  // REQUIRES: Run::Exists(path).
  static Result<RunFolder> Continue(const std::string& path);

  // Held while a process trains here.  Fails with kUnavailable when another process holds it.
  Result<FileLock> Lock() const;

  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }
  std::string checkpoints() const { return File("checkpoints"); }

 private:
  explicit RunFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// "cnn" of "cnn:filters=64", "net" of "models/net.ridge": for the folder's name.
std::string ShortModelName(const std::string& model);

}  // namespace ridge
