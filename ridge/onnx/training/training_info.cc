// ONNX defines the step as one graph whose lists are those of the file's graph and the algorithm's
// in a row.  So the importer walks both in one scope; updated initializers become variables before
// any node reads them.
#include "ridge/onnx/training/training_info.h"

#include <fmt/format.h>

#include <algorithm>

#include "onnx/onnx-ml.pb.h"
#include "ridge/graph/interpret.h"
#include "ridge/onnx/file/tensor.h"
#include "ridge/onnx/import/importer.h"

namespace ridge {
namespace {

Status Broken(const OnnxModel& model, const std::string& text) {
  return Status(ErrorCode::kInvalidModel, fmt::format("{}: training step: {}", model.name(), text));
}

constexpr char kPreview[] = "ai.onnx.preview.training";
constexpr int kRate = 0, kCount = 1;  // inputs of every optimizer

bool IsOptimizer(const onnx::NodeProto& node) {
  const std::string& op = node.op_type();
  return node.domain() == kPreview && (op == "Adagrad" || op == "Adam" || op == "Momentum");
}

std::set<std::string> ReadByOptimizers(const onnx::GraphProto& algorithm, int input) {
  std::set<std::string> names;
  for (const onnx::NodeProto& node : algorithm.node()) {
    if (IsOptimizer(node) && node.input_size() > input) names.insert(node.input(input));
  }
  return names;
}

// What the Gradient nodes derive by; empty when there are none.
std::set<std::string> Derived(const onnx::GraphProto& algorithm) {
  std::set<std::string> names;
  for (const onnx::NodeProto& node : algorithm.node()) {
    if (node.domain() != kPreview || node.op_type() != "Gradient") continue;
    for (const onnx::AttributeProto& attr : node.attribute()) {
      if (attr.name() == "xs") names.insert(attr.strings().begin(), attr.strings().end());
    }
  }
  return names;
}

// What the first Gradient node derives; "" when there is none.
std::string FirstDerived(const onnx::GraphProto& algorithm) {
  for (const onnx::NodeProto& node : algorithm.node()) {
    if (node.domain() != kPreview || node.op_type() != "Gradient") continue;
    for (const onnx::AttributeProto& attr : node.attribute()) {
      if (attr.name() == "y") return attr.s();
    }
  }
  return "";
}

// Without the dimensions that only inputs of the algorithm have.
std::map<std::string, int64_t> DimsOfGraph(const OnnxModel& model,
                                           std::map<std::string, int64_t> dims) {
  std::set<std::string> own, others;
  for (const OnnxValueInfo& input : model.inputs()) {
    for (const OnnxDim& dim : input.dims) own.insert(dim.name);
  }
  for (const OnnxValueInfo& input : TrainingStepInputs(model)) {
    for (const OnnxDim& dim : input.dims) others.insert(dim.name);
  }
  std::erase_if(dims, [&](const auto& dim) {
    return !own.contains(dim.first) && others.contains(dim.first);
  });
  return dims;
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

Status OnnxImporter::BindAlgorithm(const onnx::TrainingInfoProto& info,
                                   const OnnxStepInputs& names) {
  for (const onnx::TensorProto& proto : info.algorithm().initializer()) {
    if (Find(proto.name()) != nullptr)
      return Broken(model_, fmt::format("two initializers are named '{}'", proto.name()));
    RIDGE_ASSIGN_OR_RETURN(algorithm_[proto.name()], CopyTensor(proto, model_.external_files()));
    scopes_.back().names[proto.name()].initializer = &algorithm_.at(proto.name());
  }
  const std::set<std::string> rates = ReadByOptimizers(info.algorithm(), kRate),
                              counts = ReadByOptimizers(info.algorithm(), kCount);
  for (const onnx::ValueInfoProto& proto : info.algorithm().input()) {
    if (Find(proto.name()) != nullptr) continue;
    const OnnxValueInfo input = DescribeOnnxValue(proto);
    if (!input.supported)
      return Broken(model_, fmt::format("input '{}' is no tensor", proto.name()));
    if (rates.contains(input.name) && !names.rate.empty() && IsFloat(input.dtype)) {
      RIDGE_RETURN_IF_ERROR(BindNumber(input, names.rate));
    } else if (counts.contains(input.name) && !names.count.empty() && input.dtype == DType::kI64) {
      RIDGE_RETURN_IF_ERROR(BindNumber(input, names.count));
    } else {
      RIDGE_RETURN_IF_ERROR(BindStepInput(input));
    }
  }
  return builder_.status();
}

// One number that whoever runs the step gives.  The count is 1 more than ONNX's.
Status OnnxImporter::BindNumber(const OnnxValueInfo& input, const std::string& name) {
  if (input.dims.size() > 1 || (input.dims.size() == 1 && input.dims[0].extent != 1))
    return Broken(model_, fmt::format("optimizers read '{}', which is not one number", input.name));
  const ValueId known = builder_.graph().FindValue(name);
  const bool rate = IsFloat(input.dtype);
  const DType dtype = input.dtype == DType::kF64 ? DType::kF64 : rate ? DType::kF32 : DType::kI64;
  Value value = builder_.At(known);
  if (known == kNoValue) value = builder_.Input(name, {dtype, {}});
  if (builder_.ok()) named_.insert(value.id);
  if (rate) value = Cast(value, input.dtype);
  if (!rate) value = value - builder_.Scalar(DType::kI64, 1);
  if (!input.dims.empty()) value = Reshape(value, {1});
  if (builder_.ok()) scopes_.back().names[input.name] = {value, nullptr};
  return builder_.status();
}

Status OnnxImporter::BindStepInput(const OnnxValueInfo& input) {
  TensorType type{input.dtype, {}};
  std::vector<std::string> names;
  for (const OnnxDim& dim : input.dims) {
    const auto bound = step_dims_.find(dim.name);
    if (dim.extent < 0 && bound == step_dims_.end()) {
      return Status(ErrorCode::kInvalidArgument,
                    fmt::format("{}: dimension '{}' of input '{}' is open. hint: --dim {}=N",
                                model_.name(), dim.name, input.name, dim.name));
    }
    type.dims.push_back(dim.extent >= 0 ? dim.extent : bound->second);
    names.push_back(dim.name);
  }
  RIDGE_RETURN_IF_ERROR(CheckDims(type.dims));
  const Value value = builder_.Input(Claim(input.name), std::move(type), std::move(names));
  named_.insert(value.id);
  Bind(input.name, value);
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
  const std::set<std::string> derived = Derived(info.algorithm());
  for (const onnx::StringStringEntryProto& entry : info.update_binding()) {
    OnnxBinding* binding = Find(entry.key());
    if (binding == nullptr || binding->initializer == nullptr || binding->value.valid()) {
      return Broken(model_, fmt::format("updates '{}', which is no initializer or updated twice",
                                        entry.key()));
    }
    const Tensor& tensor = *binding->initializer;
    const bool of_graph =
        model_.initializers().contains(entry.key()) && IsFloat(tensor.type().dtype);
    const bool trained = of_graph && (derived.empty() || derived.contains(entry.key()));
    const ValueRole role = of_graph ? ValueRole::kStatistic : ValueRole::kOptimizer;
    const std::string name = Claim(entry.key());
    const Init start = Init::FromTensor(tensor);
    const Value value = trained ? builder_.Parameter(name, tensor.type(), start)
                                : builder_.State(name, tensor.type(), start, role);
    *binding = {value, nullptr};  // no longer a constant that nodes may know
    named_.insert(value.id);
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
    if (variable.type() != value.type()) {
      return Broken(model_, fmt::format("'{}' is {}; its update '{}' is {}", entry.key(),
                                        TypeToString(variable.type()), entry.value(),
                                        TypeToString(value.type())));
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
    if (!loss.valid()) loss = AsLoss(value);
    if (builder_.graph().FindOutput(output.name()) == kNoValue && output.name() != "loss")
      builder_.Output(output.name(), value);
  }
  if (!loss.valid()) {
    const Value derived = ValueOf(FirstDerived(algorithm));
    if (derived.valid()) loss = AsLoss(derived);
  }
  if (!loss.valid()) return Broken(model_, "has no output of one float, which would be the loss");
  if (builder_.graph().FindOutput("loss") == kNoValue) builder_.Output("loss", loss);
  return builder_.status();
}

// f[] where the value is one float, else invalid.
Value OnnxImporter::AsLoss(Value value) {
  const TensorType& type = value.type();
  if (!IsFloat(type.dtype) || type.elements() != 1) return {};
  return type.dims.empty() ? value : Reshape(value, {});
}

Result<Graph> OnnxImporter::RunTraining(const OnnxStepInputs& names,
                                        const std::map<std::string, int64_t>& dims) {
  step_dims_ = dims;
  const onnx::TrainingInfoProto& info = model_.proto().training_info(0);
  const onnx::GraphProto& graph = model_.proto().graph();
  scopes_.emplace_back();
  scopes_.back().top = true;
  RIDGE_RETURN_IF_ERROR(CheckOperators(graph));
  RIDGE_RETURN_IF_ERROR(CheckOperators(info.algorithm()));
  RIDGE_RETURN_IF_ERROR(BindInputs());
  for (const auto& [name, tensor] : model_.initializers())
    scopes_.back().names[name].initializer = &tensor;
  RIDGE_RETURN_IF_ERROR(BindAlgorithm(info, names));
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

std::vector<OnnxValueInfo> TrainingStepInputs(const OnnxModel& model) {
  std::vector<OnnxValueInfo> inputs;
  if (!HasTrainingStep(model)) return inputs;
  const onnx::GraphProto& algorithm = model.proto().training_info(0).algorithm();
  std::set<std::string> others = ReadByOptimizers(algorithm, kRate);
  others.merge(ReadByOptimizers(algorithm, kCount));
  for (const onnx::TensorProto& tensor : algorithm.initializer()) others.insert(tensor.name());
  for (const onnx::ValueInfoProto& input : model.proto().graph().input())
    others.insert(input.name());
  for (const onnx::ValueInfoProto& input : algorithm.input()) {
    if (!others.contains(input.name())) inputs.push_back(DescribeOnnxValue(input));
  }
  return inputs;
}

std::optional<double> TrainingStepRate(const OnnxModel& model) {
  if (!HasTrainingStep(model)) return std::nullopt;
  const onnx::TrainingInfoProto& info = model.proto().training_info(0);
  const std::set<std::string> rates = ReadByOptimizers(info.algorithm(), kRate);
  if (rates.size() != 1) return std::nullopt;
  for (const onnx::StringStringEntryProto& entry : info.update_binding()) {
    if (rates.contains(entry.key())) return std::nullopt;
  }
  Result<Tensor> rate = Status();
  for (const onnx::TensorProto& tensor : info.algorithm().initializer()) {
    if (rates.contains(tensor.name())) rate = CopyTensor(tensor, model.external_files());
  }
  const auto own = model.initializers().find(*rates.begin());
  if (own != model.initializers().end()) rate = own->second;
  if (!rate.ok() || rate->elements() != 1 || !IsFloat(rate->type().dtype)) return std::nullopt;
  return rate->at(0);
}

Result<Graph> ImportTrainingStep(const OnnxModel& model, const OnnxImportOptions& options,
                                 const OnnxStepInputs& names) {
  if (!HasTrainingStep(model)) return Broken(model, "the file has none");
  if (model.proto().training_info_size() > 1) {
    return Status(ErrorCode::kUnsupported,
                  fmt::format("{}: has {} training steps; one is read", model.name(),
                              model.proto().training_info_size()));
  }
  OnnxImportOptions plain = options;
  plain.dims = DimsOfGraph(model, options.dims);
  plain.all_parameters = false;
  plain.freeze = {"*"};
  plain.trainable.clear();
  OnnxImporter importer(model, plain);
  Result<Graph> graph = importer.RunTraining(names, options.dims);
  if (!graph.ok()) return importer.Cause(graph.status());
  return graph;
}

}  // namespace ridge
