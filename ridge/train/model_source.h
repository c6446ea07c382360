// LoadModel: what the user calls a model -> forward Graph with its batch bound.
#pragma once
#include <string>

#include "ridge/graph/graph.h"

namespace ridge {

struct ModelRequest {
  std::string model;  // a built-in spec, FILE.ridge, or a run folder
  int64_t batch = 32;
  DType dtype = DType::kF32;                 // of built-in models
  std::map<std::string, int64_t> dims = {};  // further named dimensions (`--dim NAME=N`)
};

// In a text graph the named dimension `batch` becomes request.batch; without one, the inputs' first
// extent must be request.batch already.
// Fails with kInvalidModel or kInvalidData (a missing file), kUnsupported for .onnx.
Result<Graph> LoadModel(const ModelRequest& request);

// Whether the spec names a text graph, and so must be kept with a run.
bool IsGraphFile(const std::string& model);

}  // namespace ridge
