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
                fmt::format("no model '{}'{} (built in: {}, and other sizes of them). hint: `ridge "
                            "models` lists all; a graph in text form ends in .ridge",
                            name, DidYouMean(name, BuiltinModelNames()), fmt::join(names, ", ")));
}

}  // namespace

const std::vector<BuiltinModel>& BuiltinModels() {
  static const std::vector<BuiltinModel> kModels = {MlpModel(),
                                                    CnnModel(),
                                                    ResNet18Model(),
                                                    ResNet50Model(),
                                                    UnetModel(),
                                                    GptModel(),
                                                    BertModel(),
                                                    VitTiModel(),
                                                    EfficientNetV2SModel(),
                                                    MobileNetV3SmallModel(),
                                                    LstmModel(),
                                                    ConvNextTinyModel(),
                                                    LlamaModel(),
                                                    WhisperModel(),
                                                    SamModel(),
                                                    ResNet50BertModel(),
                                                    YoloV8Model(),
                                                    PointNet2Model(),
                                                    ConformerModel()};
  return kModels;
}

namespace {

const ModelVariant* FindVariant(const BuiltinModel& model, const std::string& name) {
  for (const ModelVariant& variant : model.variants) {
    if (variant.name == name) return &variant;
  }
  return nullptr;
}

}  // namespace

const BuiltinModel* FindBuiltinModel(const std::string& name) {
  for (const BuiltinModel& model : BuiltinModels()) {
    if (model.name == name || FindVariant(model, name) != nullptr) return &model;
  }
  return nullptr;
}

std::vector<std::string> BuiltinModelNames() {
  std::vector<std::string> names;
  for (const BuiltinModel& model : BuiltinModels()) {
    names.push_back(model.name);
    for (const ModelVariant& variant : model.variants) names.push_back(variant.name);
  }
  return names;
}

std::vector<ModelParameter> ParametersOf(const std::string& name) {
  const BuiltinModel* model = FindBuiltinModel(name);
  RIDGE_CHECK(model != nullptr, name + ": a built-in model");
  std::vector<ModelParameter> parameters = model->parameters;
  const ModelVariant* variant = FindVariant(*model, name);
  if (variant == nullptr) return parameters;
  for (ModelParameter& parameter : parameters) {
    for (const auto& [changed, value] : variant->defaults) {
      if (changed == parameter.name) parameter.default_value = value;
    }
  }
  return parameters;
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
                         ModelArguments::Check(parsed, ParametersOf(parsed.name)));
  return model->build(arguments, options);
}

std::string WithSizes(const std::string& spec, const std::vector<ModelSize>& sizes,
                      std::vector<std::string>* added) {
  const Result<ModelSpec> parsed = ParseModelSpec(spec);
  const BuiltinModel* model = parsed.ok() ? FindBuiltinModel(parsed->name) : nullptr;
  if (model == nullptr) return spec;
  std::string result = spec;
  for (const ModelSize& size : sizes) {
    const auto is_it = [&](const auto& argument) { return argument.first == size.name; };
    const bool given = std::any_of(parsed->arguments.begin(), parsed->arguments.end(), is_it);
    const bool taken =
        std::any_of(model->parameters.begin(), model->parameters.end(),
                    [&](const ModelParameter& parameter) { return parameter.name == size.name; });
    if (given || !taken) continue;
    const std::string argument = fmt::format("{}={}", size.name, size.value);
    result += (result.find(':') == std::string::npos ? ":" : ",") + argument;
    if (added != nullptr) added->push_back(argument);
  }
  return result;
}

Result<std::string> AtLength(const std::string& spec, int64_t length) {
  const Result<ModelSpec> parsed = ParseModelSpec(spec);
  const BuiltinModel* model = parsed.ok() ? FindBuiltinModel(parsed->name) : nullptr;
  if (model == nullptr || model->length.empty()) {
    return Status(ErrorCode::kUnsupported,
                  fmt::format("{}: batches of several lengths need a built-in model whose weights "
                              "do not depend on the length, such as bert. hint: leave --bucket out",
                              spec));
  }
  ModelSpec at_length = {parsed->name, {}};
  for (const auto& argument : parsed->arguments) {
    if (argument.first != model->length) at_length.arguments.push_back(argument);
  }
  at_length.arguments.emplace_back(model->length, std::to_string(length));
  return ModelSpecText(at_length);
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
