// ExportModel: `ridge export RUN|MODEL --to onnx|safetensors --out PATH`.
//
// The file is written into a temporary folder beside PATH, read back, and compared with the model:
// both graphs run on the same random inputs, at one batch and, where the batch is
// open, at another.  Only then it is renamed to PATH; a file that differs too much is removed, and
// an existing PATH is kept.  A link stays a link; a device, a pipe or "-" (standard output) is
// written to at the end.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ridge/learn/optimizers/optimizer.h"
#include "ridge/train/options/machine.h"

namespace ridge {

// ONNX with a training step in it (`--with-training`).  Defaults are the run's options, else those
// of `ridge train`; the default loss of an untrained model is the cross entropy of its output
// `logits`, else its output `loss`.
struct ExportTraining {
  std::string loss;  // see loss.h
  std::optional<std::string> optimizer;
  std::optional<double> lr, momentum, weight_decay;
};

struct ExportRequest {
  std::string model;                  // built-in, FILE.onnx, FILE.ridge, or a run folder
  std::string checkpoint = "newest";  // of a run (Checkpoints::Find)
  std::string format;                 // "onnx", "safetensors"
  std::string out;
  std::optional<int64_t> batch;         // of the comparison; 2 unless the model has one
  std::map<std::string, int64_t> dims;  // further named dimensions
  std::string weights = {};             // see ModelRequest; not of a run or an ONNX file
  std::vector<std::string> weights_skip = {};
  int64_t opset = 0;                // 0: the lowest; of an ONNX file: its own
  std::optional<double> tolerance;  // of every float output; none: by element type
  uint64_t seed = 0;                // of initial values and random inputs
  std::optional<ExportTraining> training;
};

// One output of the file against the model's.
struct ExportDifference {
  std::string output;
  std::string type;     // "f32[2,10]"
  double largest = 0;   // |difference|
  double relative = 0;  // to the model's largest element
  double tolerance = 0;
  bool accepted() const { return relative <= tolerance; }
};

struct ExportReport {
  std::string path, data_path;  // "" without external data
  int64_t bytes = 0;            // of all files
  int64_t tensors = 0;          // parameters and statistics
  int64_t opset = 0, ir_version = 0;
  std::vector<std::string> checked_at;  // "batch=2", one per comparison
  std::vector<ExportDifference> outputs;
  std::string
      carries;  // what `ridge predict` reads from it: "the names of 10 classes"; "": nothing
  std::vector<std::string> notes;

  bool accepted() const;
};

// No file is written unless the report is accepted().  Fails with kUnsupported for a format or an
// operator that cannot be written, kInvalidArgument, kInvalidModel, kInvalidData, kUnavailable.
Result<ExportReport> ExportModel(const ExportRequest& request, const Machine& machine);

}  // namespace ridge
