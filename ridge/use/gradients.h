// Gradients: `ridge grad MODEL --inputs in.npz --outputs out.npz`.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ridge/data/memory_source.h"
#include "ridge/graph/graph.h"
#include "ridge/train/options/machine.h"

namespace ridge {

struct GradientRequest {
  std::string model;                    // built-in, FILE.onnx, FILE.ridge, or a run folder
  std::string checkpoint = "newest";    // of a run (Checkpoints::Find)
  std::map<std::string, int64_t> dims;  // named dimensions that the inputs do not determine
  std::vector<NamedTensor> inputs;      // by the graph's plain input names
  std::string loss;                     // an output; empty: the first
  std::string weights = {};             // see ModelRequest
  std::vector<std::string> weights_skip = {};
  uint64_t seed = 0;  // of the initial values of an untrained model
};

struct GradientResult {
  std::string loss;                    // the output whose sum is differentiated
  std::vector<NamedTensor> outputs;    // by plain output names, in the graph's order
  std::vector<NamedTensor> gradients;  // of float inputs, then of parameters, by plain names
  std::vector<std::string> warnings;   // of the run's checkpoints
};

// The graph's outputs, then the gradients of the sum of `loss` with respect to every float input
// and parameter, by their names.  Updates are dropped.  Fails with kUnsupported when an operator on
// the way has no gradient, with kInvalidModel when an output has the name of an input or parameter.
Result<Graph> GraphWithGradients(Graph graph, const GraphOutput& loss);

// Uses the file's graph unchanged, with its own form of batch norm and dropout.  Gradients are
// those of the sum of all elements of `loss`, and zeros for values that do not affect it.  Every
// float initializer of an ONNX file is a parameter; a run's parameters have their trained values.
// Fails with kInvalidArgument: an input that is missing, unknown or of another type, an output that
// is missing or not float; kUnsupported with the list of nodes that have no gradient;
// kInvalidModel when an output has the name of an input or parameter.
Result<GradientResult> Gradients(const GradientRequest& request, const Machine& machine);

}  // namespace ridge
