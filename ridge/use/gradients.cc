#include "ridge/use/gradients.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ridge/graph/autodiff.h"
#include "ridge/learn/training_graph.h"
#include "ridge/train/load/model_source.h"
#include "ridge/train/load/trained_values.h"
#include "ridge/train/loop/run_once.h"
#include "ridge/train/store/run.h"

namespace ridge {
namespace {

// The first extent of the first array that has one: the batch, where the model names it so.
int64_t BatchOf(const std::vector<NamedTensor>& inputs) {
  for (const auto& [name, tensor] : inputs) {
    const Dims& dims = tensor.type().dims;
    if (!dims.empty() && dims[0] > 0) return dims[0];
  }
  return 1;
}

Result<std::map<std::string, Tensor>> MatchInputs(const GradientRequest& request,
                                                  const Graph& graph,
                                                  const std::vector<std::string>& known) {
  std::map<std::string, Tensor> given;
  std::vector<std::string> names;
  for (ValueId id : graph.ValuesOfKind(ValueKind::kInput)) names.push_back(graph.value(id).name);
  for (const auto& [name, tensor] : request.inputs) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const ValueId id = graph.FindValue(name);
    if (id == kNoValue || graph.value(id).kind != ValueKind::kInput) {
      return InvalidArgument(fmt::format("grad: '{}' has no input '{}' (its inputs: {})",
                                         graph.name, name, fmt::join(names, ", ")));
    }
    RIDGE_ASSIGN_OR_RETURN(given[name], ConvertInput(tensor, graph.value(id), "grad"));
  }
  for (const std::string& name : names) {
    if (given.contains(name)) continue;
    if (name == kRngInput) {
      given[name] = FirstDraws(request.seed);
      continue;
    }
    return InvalidArgument(fmt::format("grad: input '{}' {} is not among the arrays given", name,
                                       TypeToString(graph.type(graph.FindValue(name)))));
  }
  return given;
}

Result<GraphOutput> FindLoss(const Graph& graph, const std::string& wanted) {
  std::vector<std::string> names;
  for (const GraphOutput& output : graph.outputs()) {
    names.push_back(fmt::format("{} {}", output.name, TypeToString(graph.type(output.value))));
    if (!wanted.empty() && output.name != wanted) continue;
    if (IsFloat(graph.type(output.value).dtype)) return output;
    return InvalidArgument(
        fmt::format("grad: output {} has no gradient: it is not float. hint: --loss with "
                    "one of: {}",
                    names.back(), fmt::join(names, ", ")));
  }
  return InvalidArgument(fmt::format("grad: '{}' has no output '{}' (its outputs: {})", graph.name,
                                     wanted, fmt::join(names, ", ")));
}

std::vector<Value> Differentiated(GraphBuilder& b) {
  const Graph& graph = b.graph();
  std::vector<Value> values;
  for (const ValueKind kind : {ValueKind::kInput, ValueKind::kParameter}) {
    for (ValueId id : graph.ValuesOfKind(kind)) {
      if (IsFloat(graph.type(id).dtype)) values.push_back(b.At(id));
    }
  }
  return values;
}

}  // namespace

Result<Graph> GraphWithGradients(Graph graph, const GraphOutput& loss) {
  graph.ClearUpdates();
  GraphBuilder b(std::move(graph));
  const std::vector<Value> with_respect_to = Differentiated(b);
  Value sum = b.At(loss.value);
  if (!sum.dims().empty()) sum = Sum(sum);
  RIDGE_ASSIGN_OR_RETURN(const std::vector<Value> gradients,
                         AppendGradients(b, sum, with_respect_to));
  for (size_t i = 0; i < gradients.size(); ++i) {
    const std::string name = b.graph().value(with_respect_to[i].id).name;
    if (b.graph().FindOutput(name) != kNoValue) {
      return Status(ErrorCode::kInvalidModel,
                    fmt::format("grad: '{}' is the name of an output and of an input or parameter; "
                                "its gradient has no name",
                                name));
    }
    b.Output(name, gradients[i]);
  }
  return b.Build();
}

Result<GradientResult> Gradients(const GradientRequest& request, const Machine& machine) {
  RIDGE_RETURN_IF_ERROR(RefuseWeightsOfRun("grad", request.model, request.weights));
  ModelNotes notes;
  RIDGE_ASSIGN_OR_RETURN(const std::string onnx, OnnxFileOf(request.model));
  // The ONNX file of a run rather than its training form.
  RIDGE_ASSIGN_OR_RETURN(Graph graph, LoadModel({.model = onnx.empty() ? request.model : onnx,
                                                 .batch = BatchOf(request.inputs),
                                                 .dims = request.dims,
                                                 .weights = request.weights,
                                                 .weights_skip = request.weights_skip,
                                                 .training = false,
                                                 .all_parameters = true,
                                                 .arrays = request.inputs},
                                                &notes));
  GradientResult result;
  RIDGE_ASSIGN_OR_RETURN(auto given, MatchInputs(request, graph, notes.known));
  RIDGE_ASSIGN_OR_RETURN(auto trained,
                         TrainedValues(request.model, request.checkpoint, &result.warnings));
  given.merge(trained);
  RIDGE_ASSIGN_OR_RETURN(const GraphOutput loss, FindLoss(graph, request.loss));
  result.loss = loss.name;
  const size_t outputs = graph.outputs().size();
  RIDGE_ASSIGN_OR_RETURN(const Graph whole, GraphWithGradients(std::move(graph), loss));
  RIDGE_ASSIGN_OR_RETURN(auto values, RunGraph(whole, given, request.seed, machine));
  const auto middle = values.begin() + static_cast<int64_t>(outputs);
  result.outputs.assign(values.begin(), middle);
  result.gradients.assign(middle, values.end());
  return result;
}

}  // namespace ridge
