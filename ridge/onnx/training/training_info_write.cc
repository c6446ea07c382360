#include "ridge/onnx/training/training_info_write.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "onnx/onnx-ml.pb.h"
#include "ridge/onnx/export/export_node.h"
#include "ridge/onnx/file/tensor.h"

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
        info_(AddInfo(*document.proto)),
        algorithm_(*info_.mutable_algorithm()),
        start_(*info_.mutable_initialization()) {
    algorithm_.set_name("training_step");
    start_.set_name("training_start");
    for (const auto& node : graph_.node())
      taken_.insert(node.output().begin(), node.output().end());
    for (const auto& input : graph_.input()) taken_.insert(input.name());
    for (const auto& tensor : graph_.initializer()) taken_.insert(tensor.name());
  }

  Status Write() {
    RIDGE_RETURN_IF_ERROR(WriteLoss());
    RIDGE_RETURN_IF_ERROR(WriteGradients());
    AddScalar("training.rate", Tensor::Scalar(dtype_, step_.rate));
    AddScalar("training.step", Tensor::FromInts({}, std::vector<int64_t>{1}));
    AddScalar("training.one", Tensor::FromInts({}, std::vector<int64_t>{1}));
    const std::string step = Own("training.step"), next = Own("training.step.next");
    Node("", "Add", {step, Own("training.one")}, {next});
    Bind(*info_.mutable_update_binding(), step, next);
    StartWith(step, Tensor::FromInts({}, std::vector<int64_t>{1}));
    for (const std::string& name : step_.trained) WriteUpdate(name);
    DeclareVersions();
    return Status();
  }

 private:
  Status WriteLoss();
  Status WriteGradients();
  std::vector<std::string> Independent() const;
  void WriteUpdate(const std::string& name);
  void DeclareVersions();
  Status CheckCrossEntropy() const;
  void WriteCrossEntropy(const onnx::TensorShapeProto& shape);
  void WriteTargetLoss(const onnx::TensorShapeProto& shape);
  static int64_t Classes(const onnx::TensorShapeProto& shape);
  Status CheckClassWeights(const onnx::TensorShapeProto& shape) const;
  void AddClassWeights(const std::string& name, const Dims& dims);
  std::string Binary(const char* op, const std::string& a, const std::string& b,
                     const std::string& name);
  void WriteShaped(const std::string& logits, const onnx::TensorShapeProto& shape);
  std::string SpreadPart(const std::string& logits, const onnx::TensorShapeProto& shape);
  std::string SumOverClasses(const std::string& x);
  std::string FocalFactor(const std::string& nll);
  int64_t Opset() const;
  const onnx::ValueInfoProto* FindOutput() const;
  onnx::TensorShapeProto OutputShape(const onnx::ValueInfoProto& output) const;
  std::string MadeFrom(std::initializer_list<const char*> ops) const;

  static onnx::TrainingInfoProto& AddInfo(onnx::ModelProto& model) {
    model.clear_training_info();
    return *model.add_training_info();
  }
  // The name of a value of ours: `wanted`, or with a number behind it where the model has that.
  const std::string& Own(const std::string& wanted) {
    std::string& name = own_[wanted];
    if (!name.empty()) return name;
    name = wanted;
    for (int n = 2; !taken_.insert(name).second; ++n) name = fmt::format("{}_{}", wanted, n);
    return name;
  }

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
    StoreTensor(tensor, Own(name), *algorithm_.add_initializer());
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
  std::set<std::string> taken_;
  std::map<std::string, std::string> own_;  // names of ours, by the wanted one
};

const onnx::ValueInfoProto* StepWriter::FindOutput() const {
  for (const onnx::ValueInfoProto& output : graph_.output()) {
    if (output.name() == step_.output) return &output;
  }
  return nullptr;
}

// What goes into the node that makes the output, where it is one of `ops`; else the output.
std::string StepWriter::MadeFrom(std::initializer_list<const char*> ops) const {
  for (const onnx::NodeProto& node : graph_.node()) {
    const bool found = std::find(ops.begin(), ops.end(), node.op_type()) != ops.end();
    if (found && node.input_size() == 1 && node.output_size() == 1 &&
        node.output(0) == step_.output) {
      return node.input(0);
    }
  }
  return step_.output;
}

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
  const onnx::TensorShapeProto shape = OutputShape(*output);
  if (step_.loss_kind == "cross_entropy") {
    RIDGE_RETURN_IF_ERROR(CheckCrossEntropy());
    RIDGE_RETURN_IF_ERROR(CheckClassWeights(shape));
    WriteCrossEntropy(shape);
  } else if (step_.loss_kind == "mse" || step_.loss_kind == "bce") {
    WriteTargetLoss(shape);
  } else {
    Node("", "Identity", {step_.output}, {Own("loss")});
  }
  Info(*algorithm_.add_output(), Own("loss"), dtype_)
      .mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape();
  return Status();
}

// What the model leaves open without a name is its first input's first dimension, or as it is here.
onnx::TensorShapeProto StepWriter::OutputShape(const onnx::ValueInfoProto& output) const {
  onnx::TensorShapeProto shape = output.type().tensor_type().shape();
  const auto rank = static_cast<int>(step_.output_dims.size());
  while (shape.dim_size() < rank) shape.add_dim();
  for (int d = 0; d < rank; ++d) {
    onnx::TensorShapeProto::Dimension& dim = *shape.mutable_dim(d);
    if (dim.has_dim_value() || !dim.dim_param().empty()) continue;
    const onnx::TensorShapeProto* first =
        graph_.input_size() > 0 ? &graph_.input(0).type().tensor_type().shape() : nullptr;
    if (d == 0 && first != nullptr && first->dim_size() > 0 && !first->dim(0).dim_param().empty()) {
      dim = first->dim(0);
    } else {
      dim.set_dim_value(step_.output_dims[static_cast<size_t>(d)]);
    }
  }
  return shape;
}

// Of the standard operators.
int64_t StepWriter::Opset() const {
  for (const onnx::OperatorSetIdProto& set : document_.proto->opset_import()) {
    if (set.domain().empty() || set.domain() == "ai.onnx") return set.version();
  }
  return kCrossEntropyOpset;
}

Status StepWriter::CheckCrossEntropy() const {
  if (Opset() >= kCrossEntropyOpset) return Status();
  return Status(ErrorCode::kUnsupported,
                fmt::format("export: a training step with cross entropy needs opset {}; the file "
                            "has {}. hint: onnx.version_converter",
                            kCrossEntropyOpset, Opset()));
}

// ONNX's classes are dimension 1; labels have the others.
void StepWriter::WriteCrossEntropy(const onnx::TensorShapeProto& shape) {
  const bool last = shape.dim_size() == 3;  // [B,T,V]
  onnx::ValueInfoProto& label = Info(*algorithm_.add_input(), Own("label"), DType::kI64);
  auto& dims = *label.mutable_type()->mutable_tensor_type()->mutable_shape();
  for (int d = 0; d < shape.dim_size(); ++d) {
    if (d != (last ? 2 : 1)) *dims.add_dim() = shape.dim(d);
  }
  std::string logits = MadeFrom({"Softmax", "LogSoftmax"});
  if (last) {
    onnx::NodeProto& node = Node("", "Transpose", {logits}, {Own("training.logits")});
    onnx::AttributeProto& perm = Attribute(node, "perm", onnx::AttributeProto::INTS);
    for (const int64_t axis : {0, 2, 1}) perm.add_ints(axis);
    logits = Own("training.logits");
  }
  std::vector<std::string> inputs = {logits, Own("label")};
  if (!step_.class_weights.empty()) {
    AddClassWeights("training.class_weights", {Classes(shape)});
    inputs.push_back(Own("training.class_weights"));
  }
  if (step_.shaped()) return WriteShaped(logits, shape);
  onnx::NodeProto& loss = Node("", "SoftmaxCrossEntropyLoss", inputs, {Own("loss")});
  Text(loss, "reduction", "mean");
}

// The dimension of the classes.
int64_t StepWriter::Classes(const onnx::TensorShapeProto& shape) {
  return shape.dim(shape.dim_size() == 3 ? 2 : 1).dim_value();
}

Status StepWriter::CheckClassWeights(const onnx::TensorShapeProto& shape) const {
  const auto count = static_cast<int64_t>(step_.class_weights.size());
  if (count == 0 || count == Classes(shape)) return Status();
  return Status(ErrorCode::kInvalidArgument,
                fmt::format("export: {} class weights; '{}' has {} classes", count, step_.output,
                            Classes(shape)));
}

void StepWriter::AddClassWeights(const std::string& name, const Dims& dims) {
  Tensor weights(TensorType{dtype_, dims});
  for (int64_t c = 0; c < weights.elements(); ++c) {
    StoreFromDouble(dtype_, weights.mutable_data(), c,
                    step_.class_weights.empty() ? 1 : step_.class_weights[static_cast<size_t>(c)]);
  }
  AddScalar(name, weights);
}

std::string StepWriter::Binary(const char* op, const std::string& a, const std::string& b,
                               const std::string& name) {
  Node("", op, {a, b}, {Own(name)});
  return Own(name);
}

// By label: (1 - e) w[label] nll - e / C sum(w logp), times (1 - exp(-nll))^gamma; then the sum
// over that of w[label], or the mean.
void StepWriter::WriteShaped(const std::string& logits, const onnx::TensorShapeProto& shape) {
  const bool weighted = !step_.class_weights.empty();
  const std::string nll = Own("training.nll");
  Text(Node("", "SoftmaxCrossEntropyLoss", {logits, Own("label")}, {nll}), "reduction", "none");
  std::string weight, row = nll;
  if (weighted) {
    weight = Binary("Gather", Own("training.class_weights"), Own("label"), "training.label_weight");
    row = Binary("Mul", row, weight, "training.weighted_nll");
  }
  if (step_.label_smoothing > 0) {
    AddScalar("training.kept", Tensor::Scalar(dtype_, 1 - step_.label_smoothing));
    row = Binary("Mul", row, Own("training.kept"), "training.kept_nll");
    row = Binary("Sub", row, SpreadPart(logits, shape), "training.smoothed_nll");
  }
  if (step_.focal_gamma > 0) row = Binary("Mul", row, FocalFactor(nll), "training.focal_nll");
  if (!weighted) {
    Attribute(Node("", "ReduceMean", {row}, {Own("loss")}), "keepdims", onnx::AttributeProto::INT)
        .set_i(0);
    return;
  }
  for (const auto& [from, sum] : {std::pair(row, "training.sum"), {weight, "training.weight_sum"}})
    Attribute(Node("", "ReduceSum", {from}, {Own(sum)}), "keepdims", onnx::AttributeProto::INT)
        .set_i(0);
  Binary("Div", Own("training.sum"), Own("training.weight_sum"), "loss");
}

// e / C sum(w logp) over the classes.
std::string StepWriter::SpreadPart(const std::string& logits, const onnx::TensorShapeProto& shape) {
  Dims dims(static_cast<size_t>(shape.dim_size()), 1);
  dims[1] = Classes(shape);
  AddClassWeights("training.spread_weights", dims);
  AddScalar("training.spread",
            Tensor::Scalar(dtype_, step_.label_smoothing / static_cast<double>(Classes(shape))));
  onnx::NodeProto& logs = Node("", "LogSoftmax", {logits}, {Own("training.log_probabilities")});
  Attribute(logs, "axis", onnx::AttributeProto::INT).set_i(1);
  const std::string each =
      Binary("Mul", Own("training.log_probabilities"), Own("training.spread_weights"),
             "training.weighted_log_probabilities");
  return Binary("Mul", SumOverClasses(each), Own("training.spread"), "training.spread_part");
}

// The axes are an input from opset 13 on.
std::string StepWriter::SumOverClasses(const std::string& x) {
  constexpr int64_t kAxesInput = 13;
  std::vector<std::string> inputs = {x};
  const bool as_input = Opset() >= kAxesInput;
  if (as_input) {
    Tensor axes(TensorType{DType::kI64, {1}});
    axes.as_mutable<int64_t>()[0] = 1;
    AddScalar("training.class_axis", axes);
    inputs.push_back(Own("training.class_axis"));
  }
  onnx::NodeProto& sum = Node("", "ReduceSum", inputs, {Own("training.class_sum")});
  if (!as_input) Attribute(sum, "axes", onnx::AttributeProto::INTS).add_ints(1);
  Attribute(sum, "keepdims", onnx::AttributeProto::INT).set_i(0);
  return Own("training.class_sum");
}

std::string StepWriter::FocalFactor(const std::string& nll) {
  AddScalar("training.certain", Tensor::Scalar(dtype_, 1));
  AddScalar("training.gamma", Tensor::Scalar(dtype_, step_.focal_gamma));
  Node("", "Neg", {nll}, {Own("training.log_probability")});
  Node("", "Exp", {Own("training.log_probability")}, {Own("training.probability")});
  const std::string missed =
      Binary("Sub", Own("training.certain"), Own("training.probability"), "training.missed");
  return Binary("Pow", missed, Own("training.gamma"), "training.focal");
}

// mse: mean of (y - t)^2.  bce: mean of softplus(z) - t z, for z before the sigmoid.
void StepWriter::WriteTargetLoss(const onnx::TensorShapeProto& shape) {
  onnx::ValueInfoProto& target = Info(*algorithm_.add_input(), Own("target"), dtype_);
  *target.mutable_type()->mutable_tensor_type()->mutable_shape() = shape;
  const std::string each = Own("training.losses"), error = Own("training.error");
  if (step_.loss_kind == "mse") {
    Node("", "Sub", {step_.output, Own("target")}, {error});
    Node("", "Mul", {error, error}, {each});
  } else {
    const std::string z = MadeFrom({"Sigmoid"});
    Node("", "Softplus", {z}, {Own("training.softplus")});
    Node("", "Mul", {Own("target"), z}, {error});
    Node("", "Sub", {Own("training.softplus"), error}, {each});
  }
  onnx::NodeProto& mean = Node("", "ReduceMean", {each}, {Own("loss")});
  Attribute(mean, "keepdims", onnx::AttributeProto::INT).set_i(0);
}

// What the loss depends on beside initializers: the data.
std::vector<std::string> StepWriter::Independent() const {
  std::vector<std::string> names;
  for (const onnx::ValueInfoProto& input : graph_.input()) {
    if (!document_.contents.contains(input.name())) names.push_back(input.name());
  }
  for (const onnx::ValueInfoProto& input : algorithm_.input()) names.push_back(input.name());
  return names;
}

Status StepWriter::WriteGradients() {
  std::vector<std::string> gradients;
  for (const std::string& name : step_.trained) {
    const auto found = document_.contents.find(name);
    if (found == document_.contents.end() || !IsFloat(found->second.type().dtype)) {
      return Status(ErrorCode::kInvalidArgument,
                    fmt::format("export: '{}' is no float initializer to train", name));
    }
    gradients.push_back(Own(name + ".grad"));
  }
  if (gradients.empty())
    return Status(ErrorCode::kInvalidArgument, "export: the model has nothing to train");
  std::vector<std::string> inputs = step_.trained;
  const std::vector<std::string> others = Independent();
  inputs.insert(inputs.end(), others.begin(), others.end());
  onnx::NodeProto& node = Node(kPreview, "Gradient", inputs, gradients);
  onnx::AttributeProto& xs = Attribute(node, "xs", onnx::AttributeProto::STRINGS);
  for (const std::string& name : step_.trained) xs.add_strings(name);
  onnx::AttributeProto& zs = Attribute(node, "zs", onnx::AttributeProto::STRINGS);
  for (const std::string& name : others) zs.add_strings(name);
  Text(node, "y", Own("loss"));
  return Status();
}

void StepWriter::StartWith(const std::string& name, const Tensor& tensor) {
  const std::string start = Own(name + ".start");
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
  const std::string state = Own(name + suffix);
  StoreTensor(zeros, state, *algorithm_.add_initializer());
  StartWith(state, zeros);
  Bind(*info_.mutable_update_binding(), state, Own(state + ".new"));
  return state;
}

void StepWriter::WriteUpdate(const std::string& name) {
  const std::string updated = Own(name + ".new");
  std::vector<std::string> inputs = {Own("training.rate"), Own("training.step"), name,
                                     Own(name + ".grad")};
  Bind(*info_.mutable_update_binding(), name, updated);
  if (step_.optimizer == "sgd") {
    const std::string buffer = State(name, ".momentum");
    inputs.push_back(buffer);
    onnx::NodeProto& node = Node(kPreview, "Momentum", inputs, {updated, Own(buffer + ".new")});
    Number(node, "alpha", step_.momentum);
    Number(node, "beta", 1);
    Number(node, "norm_coefficient", step_.weight_decay);
    Text(node, "mode", step_.nesterov ? "nesterov" : "standard");
    return;
  }
  if (step_.optimizer == "adamw" && step_.weight_decay != 0) {
    // param * (1 - rate * weight_decay), before the step.
    const DType dtype = document_.contents.at(name).type().dtype;
    AddScalar(name + ".decay", Tensor::Scalar(dtype, 1 - step_.rate * step_.weight_decay));
    inputs[2] = Own(name + ".decayed");
    Node("", "Mul", {name, Own(name + ".decay")}, {inputs[2]});
  }
  const std::string m = State(name, ".m"), v = State(name, ".v");
  inputs.push_back(m);
  inputs.push_back(v);
  onnx::NodeProto& node =
      Node(kPreview, "Adam", inputs, {updated, Own(m + ".new"), Own(v + ".new")});
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
