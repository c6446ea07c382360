#include "ridge/train/predict.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "ridge/train/checkpoint.h"
#include "ridge/train/job.h"
#include "ridge/train/model_source.h"
#include "ridge/train/run_folder.h"

namespace ridge {
namespace {

Status Usage(std::string text) { return Status(ErrorCode::kInvalidArgument, std::move(text)); }

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
  return Usage(fmt::format("run: input '{}' is {}; its first extent is the batch, at least 1", name,
                           TypeToString(tensor.type())));
}

// An ONNX file's dimensions come from the arrays; other models have a batch.
Result<Graph> LoadForInputs(const PredictRequest& request, ModelNotes& notes) {
  ModelRequest model = {.model = request.model, .dims = request.dims};
  if (IsOnnxFile(request.model) || HoldsOnnx(request.model)) {
    model.training = false;
    model.arrays = request.inputs;
  } else {
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
      return Usage(fmt::format("run: '{}' has no input '{}' (its inputs: {})", graph.name, name,
                               fmt::join(names, ", ")));
    }
  }
  for (const std::string& name : names) {
    if (Find(given, name) == nullptr) missing.push_back(name);
  }
  return missing;
}

// Whether every value of `from` can be said in `to`, up to rounding of floats.
bool Converts(DType from, DType to) {
  if (from == to || (IsFloat(from) && IsFloat(to))) return true;
  const bool to_integer = to == DType::kI64 || to == DType::kI32;
  const bool narrow = from == DType::kBool || (IsInteger(from) && IntegerBits(from) <= 32);
  return narrow && (to_integer || IsFloat(to));
}

Status FillInput(const PersistentValue& value, const Tensor& tensor, void* to) {
  const TensorType& from = tensor.type();
  if (from.dims != value.type.dims || !Converts(from.dtype, value.type.dtype)) {
    return Usage(fmt::format("run: input '{}' is {}; the graph takes {}", value.name,
                             TypeToString(from), TypeToString(value.type)));
  }
  if (from.dtype == value.type.dtype) {
    if (from.bytes() > 0) std::memcpy(to, tensor.data(), static_cast<size_t>(from.bytes()));
    return Status();
  }
  for (int64_t i = 0; i < from.elements(); ++i)
    StoreFromDouble(value.type.dtype, to, i, tensor.at(i));
  return Status();
}

Status FillInputs(const std::vector<NamedTensor>& inputs, Executor& executor) {
  for (const PersistentValue& value : executor.program().persistent) {
    if (value.kind != ValueKind::kInput || value.slot != 0) continue;
    const NamedTensor* given = Find(inputs, value.name);
    RIDGE_CHECK(given != nullptr, "the plan reads '" + value.name + "', which is not given");
    RIDGE_RETURN_IF_ERROR(FillInput(value, given->second, executor.Persistent(value.name)));
  }
  return Status();
}

std::vector<NamedTensor> CopyOutputs(const Executor& executor, const Graph& graph, int step) {
  std::vector<NamedTensor> outputs;
  for (const GraphOutput& output : graph.outputs()) {
    Tensor tensor(executor.OutputType(step, output.name));
    if (tensor.bytes() > 0) {
      std::memcpy(tensor.mutable_data(), executor.Output(step, output.name),
                  static_cast<size_t>(tensor.bytes()));
    }
    outputs.emplace_back(output.name, std::move(tensor));
  }
  return outputs;
}

}  // namespace

Result<Prediction> Predict(const PredictRequest& request, const Machine& machine) {
  if (request.inputs.empty()) return Usage("run: the input file holds no array");
  ModelNotes notes;
  RIDGE_ASSIGN_OR_RETURN(const Graph forward, LoadForInputs(request, notes));
  const std::vector<NamedTensor> inputs = Without(request.inputs, notes.known);
  RIDGE_ASSIGN_OR_RETURN(const std::vector<std::string> missing, MissingInputs(forward, inputs));
  RIDGE_ASSIGN_OR_RETURN(NamedGraph graph, BuildInferenceGraph(forward, missing));
  const Graph outputs = graph.graph;
  std::vector<NamedGraph> graphs = {std::move(graph)};
  RIDGE_ASSIGN_OR_RETURN(Program program,
                         PlanGraphs(request.model, std::move(graphs), /*passes=*/"", machine));
  RIDGE_ASSIGN_OR_RETURN(const std::unique_ptr<Executor> executor,
                         Executor::Create(std::move(program), *machine.backend));
  Prediction prediction;
  executor->InitializeVariables(request.seed);
  if (RunFolder::HoldsRun(request.model)) {
    RIDGE_ASSIGN_OR_RETURN(const LoadedCheckpoint loaded, LoadWeights(request.model, *executor));
    prediction.warnings = loaded.warnings;
  }
  RIDGE_RETURN_IF_ERROR(FillInputs(inputs, *executor));
  const int step = executor->StepIndex("infer");
  RIDGE_RETURN_IF_ERROR(executor->Run(step, /*slot=*/0));
  prediction.outputs = CopyOutputs(*executor, outputs, step);
  return prediction;
}

}  // namespace ridge
