// ONNX defines the step as one graph whose lists are those of the file's graph and the algorithm's
// in a row.  So the importer walks both in one scope; updated initializers become variables before
// any node reads them.
#include "ridge/graph/onnx/training_info.h"

#include <fmt/format.h>

#include <algorithm>

#include "onnx/onnx-ml.pb.h"
#include "ridge/graph/interpret.h"
#include "ridge/graph/onnx/importer.h"
#include "ridge/graph/onnx/tensor.h"

namespace ridge {
namespace {

Status Broken(const OnnxModel& model, const std::string& text) {
  return Status(ErrorCode::kInvalidModel, fmt::format("{}: training step: {}", model.name(), text));
}

// The outputs of the graph that makes starting contents; it has no inputs.
Result<std::map<std::string, Tensor>> RunInitialization(const OnnxModel& model,
                                                        const onnx::GraphProto& graph) {
  onnx::ModelProto proto;
  proto.set_ir_version(model.proto().ir_version());
  *proto.mutable_opset_import() = model.proto().opset_import();
  *proto.mutable_functions() = model.proto().functions();
  *proto.mutable_graph() = graph;
  RIDGE_ASSIGN_OR_RETURN(const OnnxModel initialization,
                         OnnxModel::Parse(proto.SerializeAsString(),
                                          model.name() + ": initialization", model.folder()));
  RIDGE_ASSIGN_OR_RETURN(const OnnxImport imported, ImportOnnx(initialization, {}));
  std::map<std::string, Tensor> given;
  if (imported.graph.FindValue("rng") != kNoValue)
    given["rng"] = Tensor::FromInts({3}, std::vector<int64_t>{0, 1, 0});
  RIDGE_ASSIGN_OR_RETURN(const std::vector<Tensor> values, EvaluateGraph(imported.graph, given));
  std::map<std::string, Tensor> outputs;
  for (const GraphOutput& output : imported.graph.outputs())
    outputs[output.name] = values[static_cast<size_t>(output.value)];
  return outputs;
}

}  // namespace

Status OnnxImporter::BindAlgorithm(const onnx::TrainingInfoProto& info) {
  for (const onnx::TensorProto& proto : info.algorithm().initializer()) {
    if (Find(proto.name()) != nullptr)
      return Broken(model_, fmt::format("two initializers are named '{}'", proto.name()));
    RIDGE_ASSIGN_OR_RETURN(algorithm_[proto.name()], CopyTensor(proto, model_.folder()));
    scopes_.back().names[proto.name()].initializer = &algorithm_.at(proto.name());
  }
  for (const onnx::ValueInfoProto& proto : info.algorithm().input()) {
    if (Find(proto.name()) != nullptr) continue;
    const onnx::TypeProto::Tensor& tensor = proto.type().tensor_type();
    const std::optional<DType> dtype = DTypeFromOnnx(tensor.elem_type());
    if (!dtype) return Broken(model_, fmt::format("input '{}' is no tensor", proto.name()));
    TensorType type{*dtype, {}};
    std::vector<std::string> names;
    for (const auto& dim : tensor.shape().dim()) {
      const auto bound = options_.dims.find(dim.dim_param());
      if (!dim.has_dim_value() && bound == options_.dims.end()) {
        return Status(ErrorCode::kInvalidArgument,
                      fmt::format("{}: dimension '{}' of input '{}' is open. hint: --dim {}=N",
                                  model_.name(), dim.dim_param(), proto.name(), dim.dim_param()));
      }
      type.dims.push_back(dim.has_dim_value() ? dim.dim_value() : bound->second);
      names.push_back(dim.has_dim_value() ? "" : dim.dim_param());
    }
    RIDGE_RETURN_IF_ERROR(CheckDims(type.dims));
    const Value value = builder_.Input(Claim(proto.name()), std::move(type), std::move(names));
    named_.insert(value.id);
    Bind(proto.name(), value);
  }
  return builder_.status();
}

// Contents that the file makes anew at the start of training.
Status OnnxImporter::Initialize(const onnx::TrainingInfoProto& info) {
  if (info.initialization_binding_size() == 0) return Status();
  RIDGE_ASSIGN_OR_RETURN(const auto made, RunInitialization(model_, info.initialization()));
  for (const onnx::StringStringEntryProto& entry : info.initialization_binding()) {
    OnnxBinding* binding = Find(entry.key());
    const auto found = made.find(entry.value());
    if (binding == nullptr || binding->initializer == nullptr || found == made.end()) {
      return Broken(model_, fmt::format("initialization binds '{}' to '{}', and one of them is "
                                        "not there",
                                        entry.key(), entry.value()));
    }
    if (found->second.type() != binding->initializer->type()) {
      return Broken(model_, fmt::format("initialization makes '{}' as {}; it is {}", entry.key(),
                                        TypeToString(found->second.type()),
                                        TypeToString(binding->initializer->type())));
    }
    algorithm_[entry.key()] = found->second;
    binding->initializer = &algorithm_.at(entry.key());
  }
  return Status();
}

Status OnnxImporter::BindUpdated(const onnx::TrainingInfoProto& info) {
  for (const onnx::StringStringEntryProto& entry : info.update_binding()) {
    OnnxBinding* binding = Find(entry.key());
    if (binding == nullptr || binding->initializer == nullptr || binding->value.valid()) {
      return Broken(model_, fmt::format("updates '{}', which is no initializer or updated twice",
                                        entry.key()));
    }
    const Tensor& tensor = *binding->initializer;
    const bool trained =
        model_.initializers().contains(entry.key()) && IsFloat(tensor.type().dtype);
    const std::string name = Claim(entry.key());
    binding->value = trained ? builder_.Parameter(name, tensor.type(), Init::FromTensor(tensor))
                             : builder_.State(name, tensor.type(), Init::FromTensor(tensor),
                                              ValueRole::kOptimizer);
    named_.insert(binding->value.id);
  }
  return builder_.status();
}

Status OnnxImporter::AddUpdates(const onnx::TrainingInfoProto& info) {
  for (const onnx::StringStringEntryProto& entry : info.update_binding()) {
    const Value variable = ValueOf(entry.key()), value = ValueOf(entry.value());
    if (!value.valid()) {
      return Broken(model_, fmt::format("'{}' is bound to '{}', which no node makes", entry.key(),
                                        entry.value()));
    }
    if (builder_.type(variable) != builder_.type(value)) {
      return Broken(model_, fmt::format("'{}' is {}; its update '{}' is {}", entry.key(),
                                        TypeToString(builder_.type(variable)), entry.value(),
                                        TypeToString(builder_.type(value))));
    }
    builder_.Update(variable, value);
  }
  return builder_.status();
}

// The algorithm's outputs, and the first of one float as `loss`.
Status OnnxImporter::AddAlgorithmOutputs(const onnx::GraphProto& algorithm) {
  Value loss;
  for (const onnx::ValueInfoProto& output : algorithm.output()) {
    const Value value = ValueOf(output.name());
    if (!value.valid())
      return Broken(model_, fmt::format("output '{}' is made by no node", output.name()));
    const TensorType& type = builder_.type(value);
    const bool one_float = IsFloat(type.dtype) && type.elements() == 1;
    if (one_float && !loss.valid()) loss = type.dims.empty() ? value : builder_.Reshape(value, {});
    if (builder_.graph().FindOutput(output.name()) == kNoValue && output.name() != "loss")
      builder_.Output(output.name(), value);
  }
  if (!loss.valid()) return Broken(model_, "has no output of one float, which would be the loss");
  if (builder_.graph().FindOutput("loss") == kNoValue) builder_.Output("loss", loss);
  return builder_.status();
}

Result<Graph> OnnxImporter::RunTraining() {
  const onnx::TrainingInfoProto& info = model_.proto().training_info(0);
  const onnx::GraphProto& graph = model_.proto().graph();
  scopes_.emplace_back();
  scopes_.back().top = true;
  RIDGE_RETURN_IF_ERROR(CheckOperators(graph));
  RIDGE_RETURN_IF_ERROR(CheckOperators(info.algorithm()));
  RIDGE_RETURN_IF_ERROR(BindInputs());
  for (const auto& [name, tensor] : model_.initializers())
    scopes_.back().names[name].initializer = &tensor;
  RIDGE_RETURN_IF_ERROR(BindAlgorithm(info));
  RIDGE_RETURN_IF_ERROR(Initialize(info));
  RIDGE_RETURN_IF_ERROR(BindUpdated(info));
  RIDGE_RETURN_IF_ERROR(Walk(graph));
  RIDGE_RETURN_IF_ERROR(Walk(info.algorithm()));
  RIDGE_RETURN_IF_ERROR(AddOutputs());
  RIDGE_RETURN_IF_ERROR(AddAlgorithmOutputs(info.algorithm()));
  RIDGE_RETURN_IF_ERROR(AddUpdates(info));
  RIDGE_ASSIGN_OR_RETURN(OnnxImport imported, Finish());
  return std::move(imported.graph);
}

bool HasTrainingStep(const OnnxModel& model) {
  return model.proto().training_info_size() > 0 &&
         model.proto().training_info(0).update_binding_size() > 0;
}

Result<Graph> ImportTrainingStep(const OnnxModel& model, const OnnxImportOptions& options) {
  if (!HasTrainingStep(model)) return Broken(model, "the file has none");
  if (model.proto().training_info_size() > 1) {
    return Status(ErrorCode::kUnsupported,
                  fmt::format("{}: has {} training steps; one is read", model.name(),
                              model.proto().training_info_size()));
  }
  OnnxImportOptions plain = options;
  plain.all_parameters = false;
  plain.freeze = {"*"};
  plain.trainable.clear();
  return OnnxImporter(model, plain).RunTraining();
}

}  // namespace ridge
