#include "ridge/onnx/training/training_info.h"

#include <gtest/gtest.h>

#include "onnx/onnx-ml.pb.h"
#include "ridge/graph/interpret.h"
#include "ridge/onnx/file/tensor.h"

namespace ridge {
namespace {

onnx::NodeProto& AddNode(onnx::GraphProto& graph, const char* op, std::vector<std::string> inputs,
                         std::vector<std::string> outputs, const char* domain = "") {
  onnx::NodeProto& node = *graph.add_node();
  node.set_op_type(op);
  node.set_domain(domain);
  for (const std::string& name : inputs) node.add_input(name);
  for (const std::string& name : outputs) node.add_output(name);
  return node;
}

void AddFloats(onnx::GraphProto& graph, const char* name, std::vector<float> values,
               Dims dims = {}) {
  StoreTensor(Tensor::FromFloats(std::move(dims), values), name, *graph.add_initializer());
}

void AddInfo(onnx::ValueInfoProto& info, const char* name, Dims dims) {
  info.set_name(name);
  auto& type = *info.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx::TensorProto::FLOAT);
  for (const int64_t extent : dims) type.mutable_shape()->add_dim()->set_dim_value(extent);
  type.mutable_shape();
}

void SetFloat(onnx::NodeProto& node, const char* name, float value) {
  onnx::AttributeProto& attr = *node.add_attribute();
  attr.set_name(name);
  attr.set_type(onnx::AttributeProto::FLOAT);
  attr.set_f(value);
}

void SetText(onnx::NodeProto& node, const char* name, const char* value) {
  onnx::AttributeProto& attr = *node.add_attribute();
  attr.set_name(name);
  attr.set_type(onnx::AttributeProto::STRING);
  attr.set_s(value);
}

void Bind(google::protobuf::RepeatedPtrField<onnx::StringStringEntryProto>& list, const char* key,
          const char* value) {
  onnx::StringStringEntryProto& entry = *list.Add();
  entry.set_key(key);
  entry.set_value(value);
}

// y = matmul(x, w); loss = sum(y); w = w - 0.5 * (0.9 v + dw).
onnx::ModelProto MomentumModel() {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(15);
  onnx::OperatorSetIdProto& preview = *model.add_opset_import();
  preview.set_domain("ai.onnx.preview.training");
  preview.set_version(1);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name("net");
  AddInfo(*graph.add_input(), "x", {1, 2});
  AddInfo(*graph.add_output(), "y", {1, 1});
  AddFloats(graph, "w", {1, 2}, {2, 1});
  AddNode(graph, "MatMul", {"x", "w"}, {"y"});
  onnx::TrainingInfoProto& info = *model.add_training_info();
  onnx::GraphProto& algorithm = *info.mutable_algorithm();
  AddFloats(algorithm, "v", {10, 20}, {2, 1});
  AddFloats(algorithm, "rate", {0.5F});
  StoreTensor(Tensor::FromInts({}, std::vector<int64_t>{3}), "count", *algorithm.add_initializer());
  AddNode(algorithm, "ReduceSum", {"y"}, {"total"});
  onnx::AttributeProto& keep = *algorithm.mutable_node(0)->add_attribute();
  keep.set_name("keepdims");
  keep.set_type(onnx::AttributeProto::INT);
  keep.set_i(0);
  onnx::NodeProto& gradient =
      AddNode(algorithm, "Gradient", {"w"}, {"dw"}, "ai.onnx.preview.training");
  onnx::AttributeProto& xs = *gradient.add_attribute();
  xs.set_name("xs");
  xs.set_type(onnx::AttributeProto::STRINGS);
  xs.add_strings("w");
  SetText(gradient, "y", "total");
  onnx::NodeProto& momentum = AddNode(algorithm, "Momentum", {"rate", "count", "w", "dw", "v"},
                                      {"w_new", "v_new"}, "ai.onnx.preview.training");
  SetFloat(momentum, "alpha", 0.9F);
  SetFloat(momentum, "beta", 1);
  SetFloat(momentum, "norm_coefficient", 0);
  SetText(momentum, "mode", "standard");
  AddInfo(*algorithm.add_output(), "total", {});
  Bind(*info.mutable_update_binding(), "w", "w_new");
  Bind(*info.mutable_update_binding(), "v", "v_new");
  return model;
}

Result<Graph> Import(const onnx::ModelProto& proto) {
  RIDGE_ASSIGN_OR_RETURN(const OnnxModel model, OnnxModel::Parse(proto.SerializeAsString(), "net"));
  return ImportTrainingStep(model, {});
}

TEST(TrainingInfo, UpdatesAreTheBindings) {
  const Result<Graph> graph = Import(MomentumModel());
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const Result<std::vector<Tensor>> values =
      EvaluateGraph(*graph, {{"x", Tensor::FromFloats({1, 2}, std::vector<float>{3, 5})}});
  ASSERT_TRUE(values.ok()) << values.status().message();
  ASSERT_EQ(graph->updates().size(), 2U);
  std::map<std::string, std::vector<double>> updated;
  for (const GraphUpdate& update : graph->updates()) {
    const Tensor& tensor = (*values)[static_cast<size_t>(update.value)];
    updated[graph->value(update.variable).name] = {tensor.at(0), tensor.at(1)};
  }
  // dw = x = (3, 5); v = 0.9 * (10, 20) + dw; w = (1, 2) - 0.5 v
  EXPECT_NEAR(updated["v"][0], 12, 1e-5);
  EXPECT_NEAR(updated["v"][1], 23, 1e-5);
  EXPECT_NEAR(updated["w"][0], -5, 1e-5);
  EXPECT_NEAR(updated["w"][1], -9.5, 1e-5);
  EXPECT_DOUBLE_EQ((*values)[static_cast<size_t>(graph->FindOutput("loss"))].at(0), 13);
}

TEST(TrainingInfo, UpdatedInitializersOfTheGraphAreParametersOthersStates) {
  const Result<Graph> graph = Import(MomentumModel());
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(graph->value(graph->FindValue("w")).kind, ValueKind::kParameter);
  EXPECT_EQ(graph->value(graph->FindValue("v")).kind, ValueKind::kState);
  EXPECT_EQ(graph->value(graph->FindValue("v")).role, ValueRole::kOptimizer);
}

TEST(TrainingInfo, InitializationSetsTheStart) {
  onnx::ModelProto proto = MomentumModel();
  onnx::TrainingInfoProto& info = *proto.mutable_training_info(0);
  onnx::GraphProto& graph = *info.mutable_initialization();
  graph.set_name("start");
  AddFloats(graph, "zero", {0, 0}, {2, 1});
  AddNode(graph, "Identity", {"zero"}, {"v_start"});
  AddInfo(*graph.add_output(), "v_start", {2, 1});
  Bind(*info.mutable_initialization_binding(), "v", "v_start");
  const Result<Graph> imported = Import(proto);
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  const ValueInfo& v = imported->value(imported->FindValue("v"));
  EXPECT_EQ(InitialValue(v, 0)->at(0), 0);
}

TEST(TrainingInfo, UpdatedFloatsThatNoGradientDerivesByAreStatistics) {
  onnx::ModelProto proto = MomentumModel();
  AddFloats(*proto.mutable_graph(), "mean", {4});
  onnx::TrainingInfoProto& info = *proto.mutable_training_info(0);
  AddNode(*info.mutable_algorithm(), "Add", {"mean", "rate"}, {"mean_new"});
  Bind(*info.mutable_update_binding(), "mean", "mean_new");
  const Result<Graph> graph = Import(proto);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(graph->value(graph->FindValue("mean")).role, ValueRole::kStatistic);
  EXPECT_EQ(graph->value(graph->FindValue("w")).kind, ValueKind::kParameter);
}

TEST(TrainingInfo, TheLossIsWhatIsDerivedWhereNoOutputIsOneFloat) {
  onnx::ModelProto proto = MomentumModel();
  proto.mutable_training_info(0)->mutable_algorithm()->clear_output();
  const Result<Graph> graph = Import(proto);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(graph->value(graph->FindOutput("loss")).name, "total");
}

// The rate and the count are inputs of the algorithm, and so is `scale`, whose dimension is open.
onnx::ModelProto ModelThatAsks() {
  onnx::ModelProto proto = MomentumModel();
  onnx::GraphProto& algorithm = *proto.mutable_training_info(0)->mutable_algorithm();
  algorithm.mutable_initializer()->DeleteSubrange(1, 2);  // rate and count
  AddInfo(*algorithm.add_input(), "rate", {1});
  AddInfo(*algorithm.add_input(), "count", {});
  AddInfo(*algorithm.add_input(), "scale", {});
  const auto type = [&](int input) {
    return algorithm.mutable_input(input)->mutable_type()->mutable_tensor_type();
  };
  type(1)->set_elem_type(onnx::TensorProto::INT64);
  type(2)->mutable_shape()->add_dim()->set_dim_param("M");
  return proto;
}

TEST(TrainingInfo, RateAndCountAreInputsOfTheNamesThatAreAskedFor) {
  const Result<OnnxModel> model = OnnxModel::Parse(ModelThatAsks().SerializeAsString(), "net");
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(TrainingStepRate(*model), std::nullopt);
  ASSERT_EQ(TrainingStepInputs(*model).size(), 1U);
  EXPECT_EQ(TrainingStepInputs(*model)[0].name, "scale");
  OnnxImportOptions options;
  options.dims = {{"M", 3}};
  const Result<Graph> graph =
      ImportTrainingStep(*model, options, {.rate = "the.rate", .count = "the.count"});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(graph->type(graph->FindValue("the.rate")), (TensorType{DType::kF32, {}}));
  EXPECT_EQ(graph->type(graph->FindValue("the.count")), (TensorType{DType::kI64, {}}));
  const Result<std::vector<Tensor>> values =
      EvaluateGraph(*graph, {{"x", Tensor::FromFloats({1, 2}, std::vector<float>{3, 5})},
                             {"the.rate", Tensor::Scalar(DType::kF32, 0.5)},
                             {"the.count", Tensor::Scalar(DType::kI64, 1)},
                             {"scale", Tensor(TensorType{DType::kF32, {3}})}});
  ASSERT_TRUE(values.ok()) << values.status().message();
  for (const GraphUpdate& update : graph->updates()) {
    if (graph->value(update.variable).name != "w") continue;
    EXPECT_NEAR((*values)[static_cast<size_t>(update.value)].at(0), -5, 1e-5);
  }
}

TEST(TrainingInfo, AnOpenDimensionOfTheAlgorithmIsNamed) {
  EXPECT_EQ(Import(ModelThatAsks()).status().message(),
            "net: dimension 'M' of input 'scale' is open. hint: --dim M=N");
}

TEST(TrainingInfo, TheRateIsTheNumberThatNoUpdateChanges) {
  onnx::ModelProto proto = MomentumModel();
  const Result<OnnxModel> model = OnnxModel::Parse(proto.SerializeAsString(), "net");
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(TrainingStepRate(*model), 0.5);
  Bind(*proto.mutable_training_info(0)->mutable_update_binding(), "rate", "total");
  const Result<OnnxModel> changing = OnnxModel::Parse(proto.SerializeAsString(), "net");
  ASSERT_TRUE(changing.ok()) << changing.status().message();
  EXPECT_EQ(TrainingStepRate(*changing), std::nullopt);
}

TEST(TrainingInfo, BrokenBindingsAreRefused) {
  onnx::ModelProto nothing = MomentumModel();
  nothing.mutable_training_info(0)->mutable_update_binding(0)->set_value("nowhere");
  EXPECT_EQ(Import(nothing).status().message(),
            "net: training step: 'w' is bound to 'nowhere', which no node makes");
  onnx::ModelProto type = MomentumModel();
  type.mutable_training_info(0)->mutable_update_binding(0)->set_value("total");
  EXPECT_EQ(Import(type).status().message(),
            "net: training step: 'w' is f32[2,1]; its update 'total' is f32[]");
  onnx::ModelProto absent = MomentumModel();
  absent.mutable_training_info(0)->mutable_update_binding(0)->set_key("x");
  EXPECT_EQ(Import(absent).status().message(),
            "net: training step: updates 'x', which is no initializer or updated twice");
  onnx::ModelProto none = MomentumModel();
  none.clear_training_info();
  EXPECT_EQ(Import(none).status().message(), "net: training step: the file has none");
}

}  // namespace
}  // namespace ridge
