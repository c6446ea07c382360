#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "onnx/onnx-ml.pb.h"
#include "ridge/graph/interpret.h"
#include "ridge/onnx/file/tensor.h"
#include "ridge/onnx/import/import.h"

namespace ridge {
namespace {

struct SequenceTestNode {
  const char* op;
  std::vector<std::string> inputs;
  const char* output;
  std::map<std::string, int64_t> attributes = {};
  std::vector<SequenceTestNode> body = {};  // of a loop whose list 'l' becomes 'm'
};

void AddNodes(onnx::GraphProto& graph, const std::vector<SequenceTestNode>& nodes) {
  for (const SequenceTestNode& node : nodes) {
    onnx::NodeProto& proto = *graph.add_node();
    proto.set_op_type(node.op);
    for (const std::string& name : node.inputs) proto.add_input(name);
    proto.add_output(node.output);
    for (const auto& [name, value] : node.attributes) {
      onnx::AttributeProto& attr = *proto.add_attribute();
      attr.set_name(name);
      attr.set_type(onnx::AttributeProto::INT);
      attr.set_i(value);
    }
    if (node.body.empty()) continue;
    onnx::AttributeProto& attr = *proto.add_attribute();
    attr.set_name("body");
    attr.set_type(onnx::AttributeProto::GRAPH);
    for (const char* name : {"i", "c", "l"}) attr.mutable_g()->add_input()->set_name(name);
    for (const char* name : {"c", "m"}) attr.mutable_g()->add_output()->set_name(name);
    AddNodes(*attr.mutable_g(), node.body);
  }
}

void AddInfo(onnx::ValueInfoProto& info, const char* name) {
  info.set_name(name);
  auto& type = *info.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx::TensorProto::FLOAT);
  type.mutable_shape()->add_dim()->set_dim_value(6);
}

// y of nodes that read x = f32[6] (0, 1, .. 5) and some constants: "[2]: 0 1", or the error.
std::string RunNodes(const std::vector<SequenceTestNode>& nodes) {
  onnx::ModelProto proto;
  proto.set_ir_version(8);
  proto.add_opset_import()->set_version(17);
  onnx::GraphProto& graph = *proto.mutable_graph();
  graph.set_name("net");
  AddInfo(*graph.add_input(), "x");
  AddInfo(*graph.add_output(), "y");
  for (const auto& [name, value] :
       std::map<std::string, double>{{"zero", 0}, {"two", 2}, {"four", 4}})
    StoreTensor(Tensor::Scalar(DType::kI64, value), name, *graph.add_initializer());
  StoreTensor(Tensor::FromInts({2}, std::vector<int64_t>{1, 5}), "parts", *graph.add_initializer());
  AddNodes(graph, nodes);
  const Result<OnnxModel> model = OnnxModel::Parse(proto.SerializeAsString(), "net");
  if (!model.ok()) return model.status().message();
  const Result<OnnxImport> import = ImportOnnx(*model, {});
  if (!import.ok()) return import.status().message();
  const std::vector<float> x = {0, 1, 2, 3, 4, 5};
  const auto values = EvaluateGraph(import->graph, {{"x", Tensor::FromFloats({6}, x)}});
  if (!values.ok()) return values.status().message();
  const Tensor& y = (*values)[static_cast<size_t>(import->graph.outputs().at(0).value)];
  std::string shown = DimsToString(y.type().dims) + ":";
  for (int64_t i = 0; i < y.elements(); ++i)
    shown += " " + std::to_string(static_cast<int>(y.at(i)));
  return shown;
}

TEST(OnnxSequence, SplitsBySizeBySizesAndByOne) {
  EXPECT_EQ(RunNodes({{"SplitToSequence", {"x", "four"}, "s"}, {"SequenceAt", {"s", "zero"}, "y"}}),
            "[4]: 0 1 2 3");
  EXPECT_EQ(RunNodes({{"SplitToSequence", {"x", "parts"}, "s"},
                      {"Identity", {"s"}, "t"},
                      {"SequenceAt", {"t", "zero"}, "y"}}),
            "[1]: 0");
  EXPECT_EQ(RunNodes({{"SplitToSequence", {"x"}, "s", {{"keepdims", 0}}},
                      {"SequenceAt", {"s", "two"}, "y"}}),
            "[]: 2");
}

TEST(OnnxSequence, InsertsErasesAndJoins) {
  EXPECT_EQ(RunNodes({{"SequenceConstruct", {"x", "x"}, "s"},
                      {"Neg", {"x"}, "m"},
                      {"SequenceInsert", {"s", "m", "zero"}, "t"},
                      {"SequenceAt", {"t", "zero"}, "y"}}),
            "[6]: 0 -1 -2 -3 -4 -5");
  EXPECT_EQ(RunNodes({{"SequenceConstruct", {"x", "x"}, "s"},
                      {"SequenceErase", {"s"}, "t"},
                      {"ConcatFromSequence", {"t"}, "y", {{"axis", 0}}}}),
            "[6]: 0 1 2 3 4 5");
  EXPECT_EQ(RunNodes({{"SplitToSequence", {"x", "two"}, "s"},
                      {"ConcatFromSequence", {"s"}, "y", {{"axis", -1}, {"new_axis", 1}}}}),
            "[2,3]: 0 2 4 1 3 5");
  EXPECT_EQ(RunNodes({{"SequenceEmpty", {}, "s"}, {"SequenceLength", {"s"}, "y"}}), "[]: 0");
}

TEST(OnnxSequence, GrowsInALoop) {
  EXPECT_EQ(RunNodes({{"SequenceEmpty", {}, "s"},
                      {"Loop",
                       {"four", "", "s"},
                       "t",
                       {},
                       {{"Gather", {"x", "i"}, "e"}, {"SequenceInsert", {"l", "e", "zero"}, "m"}}},
                      {"ConcatFromSequence", {"t"}, "y", {{"axis", 0}, {"new_axis", 1}}}}),
            "[4]: 3 2 1 0");
}

TEST(OnnxSequence, IsNoTensorAndATensorIsNone) {
  EXPECT_EQ(RunNodes({{"SequenceConstruct", {"x"}, "s"}, {"Neg", {"s"}, "y"}}),
            "net: Neg 'y': input 0 's' is a sequence of tensors; it must be a tensor");
  EXPECT_EQ(RunNodes({{"SequenceLength", {"x"}, "y"}}),
            "net: SequenceLength 'y': input 0 'x' is a tensor; it must be a sequence of tensors");
  EXPECT_EQ(RunNodes({{"SequenceConstruct", {"x"}, "y"}}),
            "net: output 'y' is a sequence of tensors; outputs must be tensors");
}

TEST(OnnxSequence, PositionsAndSizesStayInside) {
  EXPECT_EQ(RunNodes({{"SequenceConstruct", {"x"}, "s"}, {"SequenceAt", {"s", "two"}, "y"}}),
            "net: SequenceAt 'y': the position is 2; the sequence has 1 elements");
  EXPECT_EQ(RunNodes({{"SplitToSequence", {"x", "zero"}, "s"}, {"SequenceLength", {"s"}, "y"}}),
            "net: SplitToSequence 's': split is 0; it must be positive");
  EXPECT_EQ(RunNodes({{"SequenceEmpty", {}, "s"}, {"ConcatFromSequence", {"s"}, "y"}}),
            "net: ConcatFromSequence 'y': the sequence is empty; its elements can't be joined");
}

}  // namespace
}  // namespace ridge
