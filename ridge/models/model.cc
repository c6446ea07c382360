#include "ridge/models/model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

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
                         ModelArguments::Check(parsed, model->parameters));
  return model->build(arguments, options);
}

int64_t ParameterCount(const Graph& graph) {
  int64_t count = 0;
  for (ValueId id : graph.ValuesOfKind(ValueKind::kParameter)) {
    if (graph.value(id).trainable) count += graph.type(id).elements();
  }
  return count;
}

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
  return facts;
}

}  // namespace ridge
