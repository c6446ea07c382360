// Attention that a file wrote as primitive nodes becomes one operator.
#include <gtest/gtest.h>

#include <cmath>

#include "onnx/onnx-ml.pb.h"
#include "ridge/graph/interpret.h"
#include "ridge/graph/passes/passes.h"
#include "ridge/onnx/file/tensor.h"
#include "ridge/onnx/import/import.h"

namespace ridge {
namespace {

const TensorType kHeads{DType::kF32, {1, 2, 3, 4}};

Tensor Wave(double phase) {
  Tensor tensor(kHeads);
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const double value = std::sin(1.3 * static_cast<double>(i) + phase);
    StoreFromDouble(DType::kF32, tensor.mutable_data(), i, value);
  }
  return tensor;
}

// y = Softmax(q Transpose(k) * 0.5) v, with `between` (or nothing) between Softmax and the product.
class WrittenOut {
 public:
  explicit WrittenOut(const std::string& between = "") {
    model_.set_ir_version(8);
    model_.add_opset_import()->set_version(17);
    model_.mutable_graph()->set_name("net");
    for (const char* name : {"q", "k", "v"}) AddInput(name);
    Permute(Node("Transpose", {"k"}, "kt"));
    StoreTensor(Tensor::Scalar(DType::kF32, 0.5), "/Constant_output_0",
                *model_.mutable_graph()->add_initializer());
    Node("MatMul", {"q", "kt"}, "s");
    Node("Mul", {"s", "/Constant_output_0"}, "t");
    Node("Softmax", {"t"}, "p");
    if (!between.empty()) Node(between, {"p"}, "p2");
    Node("MatMul", {between.empty() ? "p" : "p2", "v"}, "y");
    onnx::ValueInfoProto& y = *model_.mutable_graph()->add_output();
    y.set_name("y");
    y.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
  }

  Graph Import(bool training) const {
    const Result<OnnxModel> model = OnnxModel::Parse(model_.SerializeAsString(), "net.onnx");
    EXPECT_TRUE(model.ok()) << model.status().message();
    OnnxImportOptions options;
    options.training = training;
    Result<OnnxImport> import = ImportOnnx(*model, options);
    EXPECT_TRUE(import.ok()) << import.status().message();
    if (!training) return std::move(import->graph);
    Result<Graph> recognized = RecognizeAttention(import->graph);
    EXPECT_TRUE(recognized.ok()) << recognized.status().message();
    return *std::move(recognized);
  }

 private:
  onnx::NodeProto& Node(const std::string& op, const std::vector<std::string>& inputs,
                        const std::string& output) {
    onnx::NodeProto& node = *model_.mutable_graph()->add_node();
    node.set_op_type(op);
    for (const std::string& input : inputs) node.add_input(input);
    node.add_output(output);
    return node;
  }
  static void Permute(onnx::NodeProto& node) {
    onnx::AttributeProto& perm = *node.add_attribute();
    perm.set_name("perm");
    perm.set_type(onnx::AttributeProto::INTS);
    for (int64_t axis : {0, 1, 3, 2}) perm.add_ints(axis);
  }
  void AddInput(const char* name) {
    onnx::ValueInfoProto& info = *model_.mutable_graph()->add_input();
    info.set_name(name);
    auto& type = *info.mutable_type()->mutable_tensor_type();
    type.set_elem_type(onnx::TensorProto::FLOAT);
    for (int64_t extent : kHeads.dims) type.mutable_shape()->add_dim()->set_dim_value(extent);
  }

  onnx::ModelProto model_;
};

int Count(const Graph& graph, const std::string& op) {
  int count = 0;
  for (const Node& node : graph.nodes()) count += node.op->name == op ? 1 : 0;
  return count;
}

Tensor Output(const Graph& graph) {
  const auto values = EvaluateGraph(graph, {{"q", Wave(0)}, {"k", Wave(1)}, {"v", Wave(2)}});
  EXPECT_TRUE(values.ok()) << values.status().message();
  return (*values)[static_cast<size_t>(graph.outputs()[0].value)];
}

TEST(OnnxAttention, WrittenAsNodesBecomesOneOperator) {
  const WrittenOut file;
  const Graph plain = file.Import(/*training=*/false), trained = file.Import(/*training=*/true);
  EXPECT_EQ(Count(trained, "attention"), 1);
  EXPECT_EQ(Count(trained, "softmax"), 0);
  const Tensor want = Output(plain), got = Output(trained);
  for (int64_t i = 0; i < want.elements(); ++i) EXPECT_NEAR(got.at(i), want.at(i), 1e-6) << i;
}

// Dropout of the probabilities is no attention of ours: the nodes stay, or the draw would be lost.
TEST(OnnxAttention, DropoutOfTheProbabilitiesStays) {
  const Graph trained = WrittenOut("Dropout").Import(/*training=*/true);
  EXPECT_EQ(Count(trained, "dropout"), 1);
  EXPECT_EQ(Count(trained, "softmax"), 1);
  EXPECT_EQ(Count(trained, "attention"), 0);
}

}  // namespace
}  // namespace ridge
