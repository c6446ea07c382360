// ImportOnnx: a model file -> forward Graph.
//
// Dimensions are bound first, so all types are known.  Inputs, parameters and outputs keep the
// file's names, results of nodes too.  Float initializers become parameters or constants
// (initializers.h), integers constants, running statistics states.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ridge/graph/graph.h"
#include "ridge/onnx/file/model.h"

namespace ridge {

enum class OnnxBatchNorm { kTrain, kFrozen };

struct OnnxImportOptions {
  std::map<std::string, int64_t> dims;  // by name, or by "INPUT_AXIS" where the file has no name
  // Inputs whose contents are fixed now (a shape, axes): they become constants.
  std::map<std::string, Tensor> known_inputs;
  // Training: Dropout drops, BatchNormalization uses the batch (unless frozen).
  // Otherwise the graph is as the file has it.
  bool training = false;
  OnnxBatchNorm batch_norm = OnnxBatchNorm::kTrain;
  // Patterns with * and ?: these initializers are parameters, whatever the default says.  Those of
  // `freeze` alone are contents that training does not change; ChooseTrainable marks them.
  std::vector<std::string> freeze;
  std::vector<std::string> trainable;
  // Every float initializer that is read as a value is a parameter (`ridge grad`).
  bool all_parameters = false;
  // A file of a kilobyte may ask for 2^60 trips: at most so many nodes come from loops, calls of
  // functions and lists of inputs, and so much work goes into folding (GraphBuilder).
  int64_t max_unrolled_nodes = 100'000;
  int64_t fold_work = int64_t{1} << 26;  // well under a second
};

struct OnnxImport {
  Graph graph;
  std::vector<std::string> fixed;  // float initializers that are constants, by name
  std::vector<std::string> notes;  // what a user should know, one sentence each
};

// Fails with kUnsupported for operators we lack (all of them are named, with their nodes) and for
// shapes that depend on data; kInvalidModel for files that break ONNX's rules; kInvalidArgument
// for a dimension that is open or a name that no input has.
Result<OnnxImport> ImportOnnx(const OnnxModel& model, const OnnxImportOptions& options);

// Names of open dimensions that `dims` does not bind, in order of the inputs.
std::vector<std::string> OpenOnnxDims(const OnnxModel& model,
                                      const std::map<std::string, int64_t>& dims);

}  // namespace ridge
