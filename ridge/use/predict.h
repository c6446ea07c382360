// Predict: `ridge run MODEL --inputs in.npz --outputs out.npz`: inference on given tensors.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ridge/data/memory_source.h"
#include "ridge/train/options/machine.h"

namespace ridge {

struct PredictRequest {
  std::string model;                    // built-in (initial values), FILE.ridge, or a run folder
  std::string checkpoint = "newest";    // of a run (Checkpoints::Find)
  std::map<std::string, int64_t> dims;  // named dimensions; the inputs determine `batch`
  std::string weights = {};             // see ModelRequest
  std::vector<std::string> weights_skip = {};
  std::vector<NamedTensor> inputs;  // by the graph's plain input names
  uint64_t seed = 0;                // of random numbers and of initial values
};

struct Prediction {
  std::vector<NamedTensor> outputs;  // by plain output names, in the graph's order
  std::vector<std::string> warnings;
};

// The inference form (batch norm by its running statistics, no dropout).  Omits outputs
// that need an input which is not given (the loss, without labels).  Converts the element type of
// inputs if that only rounds (f64 to f32, i32 to i64).
// Fails with kInvalidArgument for an input that the graph lacks or that has another shape.
Result<Prediction> Predict(const PredictRequest& request, const Machine& machine);

}  // namespace ridge
