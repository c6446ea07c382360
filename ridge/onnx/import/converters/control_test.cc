#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "onnx/onnx-ml.pb.h"
#include "ridge/onnx/import/import.h"

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

void AddInput(onnx::GraphProto& graph, const char* name, int type, std::vector<int64_t> dims) {
  onnx::ValueInfoProto& info = *graph.add_input();
  info.set_name(name);
  auto& tensor = *info.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(type);
  tensor.mutable_shape();
  for (const int64_t extent : dims) tensor.mutable_shape()->add_dim()->set_dim_value(extent);
}

// y = c ? -x : x x, for x = f32[2,3]: the second branch has no valid shapes.
onnx::ModelProto HalfABranch() {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name("net");
  AddInput(graph, "c", onnx::TensorProto::BOOL, {});
  AddInput(graph, "x", onnx::TensorProto::FLOAT, {2, 3});
  graph.add_output()->set_name("y");
  graph.mutable_output(0)->mutable_type()->mutable_tensor_type()->set_elem_type(1);
  onnx::NodeProto& node = AddNode(graph, "If", {"c"}, "y");
  for (const char* name : {"then_branch", "else_branch"}) {
    onnx::AttributeProto& attr = *node.add_attribute();
    attr.set_name(name);
    attr.set_type(onnx::AttributeProto::GRAPH);
    attr.mutable_g()->set_name(name);
    attr.mutable_g()->add_output()->set_name("r");
  }
  AddNode(*node.mutable_attribute(0)->mutable_g(), "Neg", {"x"}, "r");
  AddNode(*node.mutable_attribute(1)->mutable_g(), "MatMul", {"x", "x"}, "r");
  return model;
}

std::string ImportError(const OnnxImportOptions& options) {
  const Result<OnnxModel> model = OnnxModel::Parse(HalfABranch().SerializeAsString(), "net");
  if (!model.ok()) return model.status().message();
  const Result<OnnxImport> import = ImportOnnx(*model, options);
  return import.ok() ? "" : import.status().message();
}

// The words "depends on data" make `ridge run` and `ridge grad` take the condition from the arrays.
TEST(OnnxIf, ABranchThatCannotBeComputedIsNamedWhenTheConditionIsOpen) {
  const std::string error = ImportError({});
  EXPECT_EQ(
      error.rfind("net: If 'y': the condition depends on data, so both branches are computed; "
                  "one can't be: ",
                  0),
      0U)
      << error;
  EXPECT_NE(error.find("MatMul 'r'"), std::string::npos) << error;
  EXPECT_EQ(error.find("net: ", 1), std::string::npos) << "the file is named once: " << error;
}

TEST(OnnxIf, AConditionThatIsKnownNeedsItsOwnBranchOnly) {
  OnnxImportOptions options;
  options.known_inputs["c"] = Tensor::Scalar(DType::kBool, 1);
  EXPECT_EQ(ImportError(options), "");
}

// Two trips that each give x = f32[0,3] as a scan output.
TEST(OnnxLoop, StacksScanOutputsWithoutElements) {
  onnx::ModelProto proto;
  proto.set_ir_version(8);
  proto.add_opset_import()->set_version(17);
  onnx::GraphProto& graph = *proto.mutable_graph();
  graph.set_name("net");
  AddInput(graph, "x", onnx::TensorProto::FLOAT, {0, 3});
  onnx::TensorProto& trips = *graph.add_initializer();
  trips.set_name("trips");
  trips.set_data_type(onnx::TensorProto::INT64);
  trips.add_int64_data(2);
  graph.add_output()->set_name("y");
  graph.mutable_output(0)->mutable_type()->mutable_tensor_type()->set_elem_type(1);
  onnx::AttributeProto& attr = *AddNode(graph, "Loop", {"trips", ""}, "y").add_attribute();
  attr.set_name("body");
  attr.set_type(onnx::AttributeProto::GRAPH);
  onnx::GraphProto& body = *attr.mutable_g();
  body.set_name("body");
  AddInput(body, "i", onnx::TensorProto::INT64, {});
  AddInput(body, "go", onnx::TensorProto::BOOL, {});
  AddNode(body, "Identity", {"go"}, "on");
  AddNode(body, "Neg", {"x"}, "z");
  body.add_output()->set_name("on");
  body.add_output()->set_name("z");
  const Result<OnnxModel> model = OnnxModel::Parse(proto.SerializeAsString(), "net");
  ASSERT_TRUE(model.ok()) << model.status().message();
  const Result<OnnxImport> import = ImportOnnx(*model, {});
  ASSERT_TRUE(import.ok()) << import.status().message();
  EXPECT_EQ(import->graph.type(import->graph.outputs()[0].value),
            (TensorType{DType::kF32, {2, 0, 3}}));
}

}  // namespace
}  // namespace ridge
