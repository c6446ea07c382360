#include "ridge/models/model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ridge/graph/suggest.h"
#include "ridge/models/builtin.h"

namespace ridge {
namespace {

Status UnknownModel(const std::string& name) {
  std::vector<std::string> names;
  for (const BuiltinModel& model : BuiltinModels()) names.push_back(model.name);
  return Status(ErrorCode::kInvalidModel,
                fmt::format("no model '{}'{} (built in: {}). hint: a graph in text form ends in "
                            ".ridge",
                            name, DidYouMean(name, names), fmt::join(names, ", ")));
}

constexpr const char* kClasses = "classes";

// The model's parameters, with options.classes as the default of its classes.
std::vector<ModelParameter> ParametersOf(const BuiltinModel& model, const ModelOptions& options) {
  std::vector<ModelParameter> parameters = model.parameters;
  for (ModelParameter& parameter : parameters) {
    if (parameter.name == kClasses && options.classes > 0)
      parameter.default_value = options.classes;
  }
  return parameters;
}

}  // namespace

const std::vector<BuiltinModel>& BuiltinModels() {
  static const std::vector<BuiltinModel> kModels = {
      MlpModel(), CnnModel(),  ResNet18Model(), ResNet50Model(),        UnetModel(),
      GptModel(), BertModel(), VitTiModel(),    EfficientNetV2SModel(), MobileNetV3SmallModel(),
      LstmModel()};
  return kModels;
}

const BuiltinModel* FindBuiltinModel(const std::string& name) {
  for (const BuiltinModel& model : BuiltinModels()) {
    if (model.name == name) return &model;
  }
  return nullptr;
}

Result<Graph> BuildModel(const std::string& spec, const ModelOptions& options) {
  if (options.batch < 1) {
    return Status(ErrorCode::kInvalidArgument,
                  fmt::format("batch is {}; it must be at least 1", options.batch));
  }
  RIDGE_ASSIGN_OR_RETURN(const ModelSpec parsed, ParseModelSpec(spec));
  const BuiltinModel* model = FindBuiltinModel(parsed.name);
  if (model == nullptr) return UnknownModel(parsed.name);
  RIDGE_ASSIGN_OR_RETURN(const ModelArguments arguments,
                         ModelArguments::Check(parsed, ParametersOf(*model, options)));
  return model->build(arguments, options);
}

bool LeavesClassesOpen(const std::string& spec) {
  const auto parsed = ParseModelSpec(spec);
  const BuiltinModel* model = parsed.ok() ? FindBuiltinModel(parsed->name) : nullptr;
  if (model == nullptr) return false;
  const auto is_classes = [](const auto& named) { return named.name == kClasses; };
  const bool takes = std::any_of(model->parameters.begin(), model->parameters.end(), is_classes);
  const auto given = [](const auto& argument) { return argument.first == kClasses; };
  return takes && std::none_of(parsed->arguments.begin(), parsed->arguments.end(), given);
}

int64_t ParameterCount(const Graph& graph) {
  int64_t count = 0;
  for (ValueId id : graph.ValuesOfKind(ValueKind::kParameter)) {
    if (graph.value(id).trainable) count += graph.type(id).elements();
  }
  return count;
}

namespace {

// All nodes that the logits (without logits: any output) are computed from.
double ForwardFlops(const Graph& graph) {
  std::vector<bool> needed(graph.values().size(), false);
  const ValueId logits = graph.FindOutput("logits");
  for (const GraphOutput& output : graph.outputs()) {
    if (logits == kNoValue || output.value == logits)
      needed[static_cast<size_t>(output.value)] = true;
  }
  double flops = 0;
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
    const auto is_needed = [&](ValueId id) { return needed[static_cast<size_t>(id)]; };
    if (std::none_of(node->outputs.begin(), node->outputs.end(), is_needed)) continue;
    flops += static_cast<double>(CallCost(*node->op, graph.Call(*node)).flops);
    for (ValueId id : node->inputs) {
      if (id != kNoValue) needed[static_cast<size_t>(id)] = true;
    }
  }
  return flops;
}

}  // namespace

Result<ModelFacts> DescribeModel(const std::string& spec) {
  RIDGE_ASSIGN_OR_RETURN(const Graph graph, BuildModel(spec, {.batch = 2}));
  ModelFacts facts;
  facts.name = spec;
  for (ValueId id : graph.ValuesOfKind(ValueKind::kInput)) {
    TensorType type = graph.type(id);
    type.dims.erase(type.dims.begin());
    facts.inputs.emplace_back(graph.value(id).name, std::move(type));
  }
  const ValueId logits = graph.FindOutput("logits");
  if (logits != kNoValue) facts.classes = graph.type(logits).dims.back();
  facts.parameter_count = ParameterCount(graph);
  // The difference leaves out what a batch costs whatever its size.
  RIDGE_ASSIGN_OR_RETURN(const Graph larger, BuildModel(spec, {.batch = 3}));
  facts.sample_flops = ForwardFlops(larger) - ForwardFlops(graph);
  return facts;
}

}  // namespace ridge
