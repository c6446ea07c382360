#include "ridge/use/predict.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ridge/learn/training_graph.h"
#include "ridge/train/load/model_source.h"
#include "ridge/train/load/trained_values.h"
#include "ridge/train/loop/run_once.h"
#include "ridge/train/store/run.h"

namespace ridge {
namespace {

const NamedTensor* Find(const std::vector<NamedTensor>& tensors, const std::string& name) {
  for (const NamedTensor& tensor : tensors) {
    if (tensor.first == name) return &tensor;
  }
  return nullptr;
}

// The first extent of the first input given, which must be the batch.
Result<int64_t> BatchOf(const PredictRequest& request) {
  const auto& [name, tensor] = request.inputs[0];
  const Dims& dims = tensor.type().dims;
  if (!dims.empty() && dims[0] > 0) return dims[0];
  return InvalidArgument(
      fmt::format("run: input '{}' is {}; its first extent is the batch, at least 1", name,
                  TypeToString(tensor.type())));
}

// An ONNX file's dimensions come from the arrays; other models have a batch.
Result<Graph> LoadForInputs(const PredictRequest& request, ModelNotes& notes) {
  ModelRequest model = {.model = request.model,
                        .dims = request.dims,
                        .weights = request.weights,
                        .weights_skip = request.weights_skip};
  RIDGE_ASSIGN_OR_RETURN(const std::string onnx, OnnxFileOf(request.model));
  if (!onnx.empty()) {
    model.training = false;
    model.arrays = request.inputs;
  } else if (!request.inputs.empty()) {
    RIDGE_ASSIGN_OR_RETURN(model.batch, BatchOf(request));
  }
  return LoadModel(model, &notes);
}

std::vector<NamedTensor> Without(const std::vector<NamedTensor>& inputs,
                                 const std::vector<std::string>& names) {
  std::vector<NamedTensor> rest;
  for (const NamedTensor& input : inputs) {
    if (std::find(names.begin(), names.end(), input.first) == names.end()) rest.push_back(input);
  }
  return rest;
}

Result<std::vector<std::string>> MissingInputs(const Graph& graph,
                                               const std::vector<NamedTensor>& given) {
  std::vector<std::string> names, missing;
  for (ValueId id : graph.ValuesOfKind(ValueKind::kInput)) names.push_back(graph.value(id).name);
  for (const auto& [name, tensor] : given) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      return InvalidArgument(fmt::format("run: '{}' has no input '{}' (its inputs: {})", graph.name,
                                         name, fmt::join(names, ", ")));
    }
  }
  for (const std::string& name : names) {
    if (Find(given, name) == nullptr) missing.push_back(name);
  }
  return missing;
}

// A model may have no input at all, or random numbers alone.
bool ReadsArrays(const Graph& graph) {
  const std::vector<ValueId> inputs = graph.ValuesOfKind(ValueKind::kInput);
  return std::any_of(inputs.begin(), inputs.end(),
                     [&](ValueId id) { return graph.value(id).name != kRngInput; });
}

// The given arrays as the inputs want them, by name.
Result<std::map<std::string, Tensor>> ConvertInputs(const Graph& graph,
                                                    const std::vector<NamedTensor>& inputs) {
  std::map<std::string, Tensor> given;
  for (const auto& [name, tensor] : inputs) {
    RIDGE_ASSIGN_OR_RETURN(given[name],
                           ConvertInput(tensor, graph.value(graph.FindValue(name)), "run"));
  }
  return given;
}

}  // namespace

Result<Prediction> Predict(const PredictRequest& request, const Machine& machine) {
  RIDGE_RETURN_IF_ERROR(RefuseWeightsOfRun("run", request.model, request.weights));
  ModelNotes notes;
  RIDGE_ASSIGN_OR_RETURN(const Graph forward, LoadForInputs(request, notes));
  const std::vector<NamedTensor> inputs = Without(request.inputs, notes.known);
  RIDGE_ASSIGN_OR_RETURN(std::vector<std::string> missing, MissingInputs(forward, inputs));
  if (request.inputs.empty() && ReadsArrays(forward))
    return InvalidArgument("run: the input file holds no array");
  RIDGE_ASSIGN_OR_RETURN(auto given, ConvertInputs(forward, inputs));
  if (std::erase(missing, kRngInput) > 0) given[kRngInput] = FirstDraws(request.seed);
  RIDGE_ASSIGN_OR_RETURN(const NamedGraph graph, BuildInferenceGraph(forward, missing));
  Prediction prediction;
  RIDGE_ASSIGN_OR_RETURN(auto trained,
                         TrainedValues(request.model, request.checkpoint, &prediction.warnings));
  given.merge(trained);
  RIDGE_ASSIGN_OR_RETURN(prediction.outputs, RunGraph(graph.graph, given, request.seed, machine));
  return prediction;
}

}  // namespace ridge
