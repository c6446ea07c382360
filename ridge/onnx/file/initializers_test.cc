#include "ridge/onnx/file/initializers.h"

#include <gtest/gtest.h>

#include "onnx/onnx-ml.pb.h"
#include "ridge/graph/trainable.h"
#include "ridge/onnx/file/tensor.h"

namespace ridge {
namespace {

onnx::NodeProto& AddNode(onnx::GraphProto& graph, const char* op,
                         const std::vector<const char*>& inputs, const char* output) {
  onnx::NodeProto& node = *graph.add_node();
  node.set_op_type(op);
  for (const char* name : inputs) node.add_input(name);
  node.add_output(output);
  return node;
}

void AddConstant(onnx::GraphProto& graph, const Tensor& value, const char* output) {
  onnx::AttributeProto& attr = *AddNode(graph, "Constant", {}, output).add_attribute();
  attr.set_name("value");
  attr.set_type(onnx::AttributeProto::TENSOR);
  StoreTensor(value, "", *attr.mutable_t());
}

void AddInfo(onnx::ValueInfoProto& info, const char* name) {
  info.set_name(name);
  auto& type = *info.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx::TensorProto::FLOAT);
  type.mutable_shape()->add_dim()->set_dim_value(2);
}

// y = x * w + three, where w = f32[2] and three are results of Constant nodes.
onnx::ModelProto ConstantWeights() {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name("net");
  AddInfo(*graph.add_input(), "x");
  AddInfo(*graph.add_output(), "y");
  AddConstant(graph, Tensor::FromFloats({2}, std::vector<float>{1, 2}), "w");
  AddConstant(graph, Tensor::Scalar(DType::kF32, 3), "three");
  AddNode(graph, "Mul", {"x", "w"}, "xw");
  AddNode(graph, "Add", {"xw", "three"}, "y");
  return model;
}

// Names of the trained parameters, in order.
std::string Trained(const onnx::ModelProto& proto, const OnnxImportOptions& options = {}) {
  const Result<OnnxModel> model = OnnxModel::Parse(proto.SerializeAsString(), "net");
  if (!model.ok()) return model.status().message();
  const Result<OnnxImport> import = ImportOnnx(*model, options);
  if (!import.ok()) return import.status().message();
  Graph graph = import->graph;
  const Status chosen = ChooseTrainable({options.freeze, options.trainable}, graph);
  if (!chosen.ok()) return chosen.message();
  std::string names;
  for (const ValueId id : graph.ValuesOfKind(ValueKind::kParameter)) {
    const ValueInfo& info = graph.value(id);
    if (info.trainable) names += (names.empty() ? "" : " ") + info.name;
  }
  return names;
}

TEST(InitializerRoles, ConstantNodesHoldTheWeightsOfAFileWithoutInitializers) {
  EXPECT_EQ(Trained(ConstantWeights()), "w");
}

TEST(InitializerRoles, ConstantNodesBesideInitializersAreConstants) {
  onnx::ModelProto model = ConstantWeights();
  onnx::GraphProto& graph = *model.mutable_graph();
  StoreTensor(Tensor::FromFloats({2}, std::vector<float>{1, 2}), "bias", *graph.add_initializer());
  graph.mutable_node(3)->set_input(1, "bias");
  EXPECT_EQ(Trained(model), "bias");
  OnnxImportOptions options;
  options.trainable = {"w"};
  EXPECT_EQ(Trained(model, options), "w bias");
}

TEST(InitializerRoles, AConstantThatIsFrozenIsNotTrained) {
  OnnxImportOptions options;
  options.freeze = {"*"};
  EXPECT_EQ(
      Trained(ConstantWeights(), options),
      "net: --freeze leaves no parameter to train. hint: --trainable 'w' trains the last one");
}

// Without the exporter's signature only the name and the values tell.
TEST(InitializerRoles, AMaskThatAToolNamedIsNotTrained) {
  for (const char* name : {"val_54", "onnx::Mul_7", "mask"}) {
    for (const float second : {-3.4028235e38F, -100.0F, 0.0F, 0.5F}) {
      onnx::ModelProto model = ConstantWeights();
      onnx::GraphProto& graph = *model.mutable_graph();
      StoreTensor(Tensor::FromFloats({2}, std::vector<float>{0, second}), name,
                  *graph.add_initializer());
      graph.mutable_node(2)->set_input(1, name);
      const bool trained = second == 0.5F || name == std::string("mask");
      EXPECT_EQ(Trained(model), trained ? name : "") << name << " " << second;
    }
  }
}

// tf2onnx names what stands in TensorFlow's code by the operator that reads it.
TEST(InitializerRoles, AScalarOfTensorFlowIsTrainedWhenItIsAVariable) {
  for (const char* name : {"norm/add/y:0", "norm/Cast/x:0", "scale/ReadVariableOp:0", "scale"}) {
    onnx::ModelProto model = ConstantWeights();
    onnx::GraphProto& graph = *model.mutable_graph();
    StoreTensor(Tensor::FromFloats({2}, std::vector<float>{1, 2}), "bias",
                *graph.add_initializer());
    StoreTensor(Tensor::Scalar(DType::kF32, 0.001), name, *graph.add_initializer());
    graph.mutable_node(2)->set_input(1, name);
    graph.mutable_node(3)->set_input(1, "bias");
    const bool variable = std::string_view(name).starts_with("scale");
    EXPECT_EQ(Trained(model), variable ? std::string(name) + " bias" : "bias") << name;
  }
}

}  // namespace
}  // namespace ridge
