#include "ridge/graph/onnx/training_info_write.h"

#include <fmt/format.h>

#include <algorithm>

#include "onnx/onnx-ml.pb.h"
#include "ridge/graph/onnx/export_node.h"
#include "ridge/graph/onnx/tensor.h"

namespace ridge {
namespace {

constexpr char kPreview[] = "ai.onnx.preview.training";
constexpr int64_t kLeastIr = 7;  // the first with training_info

class StepWriter {
 public:
  StepWriter(const OnnxTrainingStep& step, OnnxDocument& document)
      : step_(step),
        document_(document),
        graph_(*document.proto->mutable_graph()),
        info_(*document.proto->add_training_info()),
        algorithm_(*info_.mutable_algorithm()),
        start_(*info_.mutable_initialization()) {
    algorithm_.set_name("training_step");
    start_.set_name("training_start");
  }

  Status Write() {
    RIDGE_RETURN_IF_ERROR(WriteLoss());
    RIDGE_RETURN_IF_ERROR(WriteGradients());
    AddScalar("training.rate", Tensor::Scalar(dtype_, step_.rate));
    AddScalar("training.step", Tensor::FromInts({}, std::vector<int64_t>{1}));
    AddScalar("training.one", Tensor::FromInts({}, std::vector<int64_t>{1}));
    Node("", "Add", {"training.step", "training.one"}, {"training.step.next"});
    Bind(*info_.mutable_update_binding(), "training.step", "training.step.next");
    StartWith("training.step", Tensor::FromInts({}, std::vector<int64_t>{1}));
    for (const std::string& name : step_.trained) WriteUpdate(name);
    DeclareVersions();
    return Status();
  }

 private:
  Status WriteLoss();
  Status WriteGradients();
  void WriteUpdate(const std::string& name);
  void DeclareVersions();
  const onnx::ValueInfoProto* FindOutput() const;
  std::string Logits() const;

  onnx::NodeProto& Node(const char* domain, const char* op, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs) {
    onnx::NodeProto& node = *algorithm_.add_node();
    node.set_domain(domain);
    node.set_op_type(op);
    node.set_name("training/" + outputs[0]);
    for (const std::string& input : inputs) node.add_input(input);
    for (const std::string& output : outputs) node.add_output(output);
    return node;
  }
  static onnx::AttributeProto& Attribute(onnx::NodeProto& node, const char* name,
                                         onnx::AttributeProto::AttributeType type) {
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(type);
    return attribute;
  }
  static void Number(onnx::NodeProto& node, const char* name, double value) {
    Attribute(node, name, onnx::AttributeProto::FLOAT).set_f(static_cast<float>(value));
  }
  static void Text(onnx::NodeProto& node, const char* name, const std::string& value) {
    Attribute(node, name, onnx::AttributeProto::STRING).set_s(value);
  }
  void AddScalar(const std::string& name, const Tensor& tensor) {
    StoreTensor(tensor, name, *algorithm_.add_initializer());
  }
  static void Bind(google::protobuf::RepeatedPtrField<onnx::StringStringEntryProto>& list,
                   const std::string& key, const std::string& value) {
    onnx::StringStringEntryProto& entry = *list.Add();
    entry.set_key(key);
    entry.set_value(value);
  }
  // The start of a state, as an initializer and as what `initialization` makes.
  void StartWith(const std::string& name, const Tensor& tensor);
  std::string State(const std::string& name, const char* suffix);
  onnx::ValueInfoProto& Info(onnx::ValueInfoProto& info, const std::string& name, DType dtype) {
    info.set_name(name);
    info.mutable_type()->mutable_tensor_type()->set_elem_type(OnnxFromDType(dtype));
    return info;
  }

  const OnnxTrainingStep& step_;
  OnnxDocument& document_;
  onnx::GraphProto& graph_;
  onnx::TrainingInfoProto& info_;
  onnx::GraphProto &algorithm_, &start_;
  DType dtype_ = DType::kF32;  // of the loss
};

const onnx::ValueInfoProto* StepWriter::FindOutput() const {
  for (const onnx::ValueInfoProto& output : graph_.output()) {
    if (output.name() == step_.output) return &output;
  }
  return nullptr;
}

// What SoftmaxCrossEntropyLoss reads: the logits, where the output is their softmax.
std::string StepWriter::Logits() const {
  for (const onnx::NodeProto& node : graph_.node()) {
    const bool softmax = node.op_type() == "Softmax" || node.op_type() == "LogSoftmax";
    if (softmax && node.input_size() == 1 && node.output_size() == 1 &&
        node.output(0) == step_.output) {
      return node.input(0);
    }
  }
  return step_.output;
}

// Classes are dimension 1; labels have the others.
Status StepWriter::WriteLoss() {
  const onnx::ValueInfoProto* output = FindOutput();
  const auto dtype =
      output == nullptr ? std::nullopt : DTypeFromOnnx(output->type().tensor_type().elem_type());
  if (!dtype || !IsFloat(*dtype)) {
    return Status(
        ErrorCode::kInvalidArgument,
        fmt::format("export: the model has no float output '{}' for a loss", step_.output));
  }
  dtype_ = *dtype;
  const auto& shape = output->type().tensor_type().shape();
  std::string loss = "loss";
  if (step_.loss_kind == "cross_entropy") {
    onnx::ValueInfoProto& label = Info(*algorithm_.add_input(), "label", DType::kI64);
    for (int d = 0; d < shape.dim_size(); ++d) {
      if (d != 1)
        *label.mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim() = shape.dim(d);
    }
    Text(Node("", "SoftmaxCrossEntropyLoss", {Logits(), "label"}, {loss}), "reduction", "mean");
  } else if (step_.loss_kind == "mse") {
    onnx::ValueInfoProto& target = Info(*algorithm_.add_input(), "target", dtype_);
    *target.mutable_type()->mutable_tensor_type()->mutable_shape() = shape;
    Node("", "Sub", {step_.output, "target"}, {"training.error"});
    Node("", "Mul", {"training.error", "training.error"}, {"training.square"});
    onnx::NodeProto& mean = Node("", "ReduceMean", {"training.square"}, {loss});
    Attribute(mean, "keepdims", onnx::AttributeProto::INT).set_i(0);
  } else {
    Node("", "Identity", {step_.output}, {loss});
  }
  Info(*algorithm_.add_output(), loss, dtype_)
      .mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape();
  return Status();
}

Status StepWriter::WriteGradients() {
  std::vector<std::string> gradients;
  for (const std::string& name : step_.trained) {
    const auto found = document_.contents.find(name);
    if (found == document_.contents.end() || !IsFloat(found->second.type().dtype)) {
      return Status(ErrorCode::kInvalidArgument,
                    fmt::format("export: '{}' is no float initializer to train", name));
    }
    gradients.push_back(name + ".grad");
  }
  if (gradients.empty())
    return Status(ErrorCode::kInvalidArgument, "export: the model has nothing to train");
  onnx::NodeProto& node = Node(kPreview, "Gradient", step_.trained, gradients);
  onnx::AttributeProto& xs = Attribute(node, "xs", onnx::AttributeProto::STRINGS);
  for (const std::string& name : step_.trained) xs.add_strings(name);
  Text(node, "y", "loss");
  return Status();
}

void StepWriter::StartWith(const std::string& name, const Tensor& tensor) {
  const std::string start = name + ".start";
  onnx::NodeProto& node = *start_.add_node();
  node.set_name(start);
  node.add_output(start);
  if (tensor.type().dims.empty()) {
    node.set_op_type("Constant");
    StoreTensor(tensor, "", *Attribute(node, "value", onnx::AttributeProto::TENSOR).mutable_t());
  } else {
    node.set_op_type("ConstantOfShape");
    node.add_input(start + ".shape");
    const Dims& dims = tensor.type().dims;
    StoreTensor(Tensor::FromInts({static_cast<int64_t>(dims.size())}, dims), start + ".shape",
                *start_.add_initializer());
    Tensor zero(TensorType{tensor.type().dtype, {1}});
    StoreTensor(zero, "", *Attribute(node, "value", onnx::AttributeProto::TENSOR).mutable_t());
  }
  onnx::ValueInfoProto& info = Info(*start_.add_output(), start, tensor.type().dtype);
  auto& shape = *info.mutable_type()->mutable_tensor_type()->mutable_shape();
  for (const int64_t extent : tensor.type().dims) shape.add_dim()->set_dim_value(extent);
  Bind(*info_.mutable_initialization_binding(), name, start);
}

std::string StepWriter::State(const std::string& name, const char* suffix) {
  const Tensor zeros(document_.contents.at(name).type());
  const std::string state = name + suffix;
  StoreTensor(zeros, state, *algorithm_.add_initializer());
  StartWith(state, zeros);
  Bind(*info_.mutable_update_binding(), state, state + ".new");
  return state;
}

void StepWriter::WriteUpdate(const std::string& name) {
  const std::string gradient = name + ".grad", updated = name + ".new";
  const std::vector<std::string> common = {"training.rate", "training.step", name, gradient};
  Bind(*info_.mutable_update_binding(), name, updated);
  if (step_.optimizer == "sgd") {
    const std::string buffer = State(name, ".momentum");
    std::vector<std::string> inputs = common;
    inputs.push_back(buffer);
    onnx::NodeProto& node = Node(kPreview, "Momentum", inputs, {updated, buffer + ".new"});
    Number(node, "alpha", step_.momentum);
    Number(node, "beta", 1);
    Number(node, "norm_coefficient", step_.weight_decay);
    Text(node, "mode", step_.nesterov ? "nesterov" : "standard");
    return;
  }
  std::vector<std::string> inputs = common;
  if (step_.optimizer == "adamw" && step_.weight_decay != 0) {
    // param * (1 - rate * weight_decay), before the step.
    const std::string factor = name + ".decay";
    AddScalar(factor, Tensor::Scalar(dtype_, 1 - step_.rate * step_.weight_decay));
    inputs[2] = name + ".decayed";
    Node("", "Mul", {name, factor}, {inputs[2]});
  }
  const std::string m = State(name, ".m"), v = State(name, ".v");
  inputs.push_back(m);
  inputs.push_back(v);
  onnx::NodeProto& node = Node(kPreview, "Adam", inputs, {updated, m + ".new", v + ".new"});
  Number(node, "alpha", step_.beta1);
  Number(node, "beta", step_.beta2);
  Number(node, "epsilon", step_.epsilon);
  Number(node, "norm_coefficient", step_.optimizer == "adam" ? step_.weight_decay : 0);
  Number(node, "norm_coefficient_post", 0);
}

void StepWriter::DeclareVersions() {
  onnx::ModelProto& model = *document_.proto;
  model.set_ir_version(std::max<int64_t>(model.ir_version(), kLeastIr));
  for (const onnx::OperatorSetIdProto& set : model.opset_import()) {
    if (set.domain() == kPreview) return;
  }
  onnx::OperatorSetIdProto& set = *model.add_opset_import();
  set.set_domain(kPreview);
  set.set_version(1);
}

}  // namespace

Status AddTrainingStep(const OnnxTrainingStep& step, OnnxDocument& document) {
  return StepWriter(step, document).Write();
}

}  // namespace ridge
