// The built-in models: a spec such as "mlp:hidden=256" -> forward Graph with a loss.
//
// Every graph has inputs `image` (f32[batch=N, ...]) and `label` (i64[batch=N]) and outputs
// `logits` and `loss` (mean cross-entropy).  It is the training form: batch norm uses the batch's
// statistics and updates the running ones.  Names, shapes and starting values are PyTorch's.
#pragma once
#include <string>
#include <vector>

#include "ridge/data/source.h"
#include "ridge/graph/graph.h"
#include "ridge/models/arguments.h"
#include "ridge/models/weights.h"

namespace ridge {

struct ModelOptions {
  int64_t batch = 32;
  DType dtype = DType::kF32;  // of parameters and activations
};

// A public size of a model: "gpt2_medium" and "gpt:175b" are gpt with other defaults and, where the
// model's table has a row of this name, other layers.
struct ModelVariant {
  std::string name;
  std::string doc;
  std::vector<std::pair<std::string, int64_t>> defaults = {};  // that differ from the model's
};

struct BuiltinModel {
  std::string name;
  std::string doc;
  std::vector<ModelParameter> parameters;
  std::vector<ModelVariant> variants = {};
  // The parameter that is the tokens of a sample, if it changes no weight; "": there is none.
  std::string length = {};
  Result<Graph> (*build)(const ModelArguments& arguments, const ModelOptions& options) = nullptr;
  WeightNames (*weight_names)() = nullptr;  // of public files of its weights
};

// In the order in which help lists them.
const std::vector<BuiltinModel>& BuiltinModels();
// The model of this name, or that with a variant of this name; nullptr when there is none.
const BuiltinModel* FindBuiltinModel(const std::string& name);
// Names of all models, each followed by those of its variants.
std::vector<std::string> BuiltinModelNames();
// What a model or variant takes, with its defaults.  REQUIRES: FindBuiltinModel finds it.
std::vector<ModelParameter> ParametersOf(const std::string& name);

// Fails with kInvalidModel for an unknown name or parameter (the message lists what there is), and
// with kInvalidArgument for a batch below 1.
Result<Graph> BuildModel(const std::string& spec, const ModelOptions& options = {});

// The spec with those sizes that its model takes and the spec does not give: "mlp:hidden=8" ->
// "mlp:hidden=8,inputs=4,classes=3".  `added` gets "inputs=4", "classes=3".  Other specs, and those
// that BuildModel refuses, stay as they are.
std::string WithSizes(const std::string& spec, const std::vector<ModelSize>& sizes,
                      std::vector<std::string>* added = nullptr);

// The spec with samples of `length` tokens instead of its own: "bert:tokens=128,layers=2" ->
// "bert:layers=2,tokens=64".  Fails with kUnsupported where the weights of the model depend on the
// length, or it has none.
Result<std::string> AtLength(const std::string& spec, int64_t length);

// What a graph takes and learns.
struct ModelFacts {
  std::string name;                                        // the spec
  std::vector<std::pair<std::string, TensorType>> inputs;  // of one sample
  int64_t classes = 0;          // extent of the last dimension of `logits`; 0 without logits
  int64_t parameter_count = 0;  // trainable elements
  double sample_flops = 0;      // that one sample adds to a batch, forward, up to the logits
};
// Of the spec at its own sizes.  Fails as BuildModel does.
Result<ModelFacts> DescribeModel(const std::string& spec);

// Trainable elements of a graph.
int64_t ParameterCount(const Graph& graph);

}  // namespace ridge
