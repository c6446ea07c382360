// One ONNX node as a model, for tests of converters.
//
//   TestNode node("Slice", 9);
//   node.Input("x", x).Ints("starts", {1}).Ints("ends", {3});
//   EXPECT_EQ(node.Run(), (std::vector<double>{2, 3}));
#pragma once
#include <map>
#include <string>
#include <vector>

#include "onnx/onnx-ml.pb.h"
#include "ridge/graph/interpret.h"
#include "ridge/onnx/file/tensor.h"
#include "ridge/onnx/import/import.h"

namespace ridge {

class TestNode {
 public:
  TestNode(const char* op, int64_t opset, int outputs = 1) {
    model_.set_ir_version(8);
    model_.add_opset_import()->set_version(opset);
    graph().set_name("net");
    node().set_op_type(op);
    for (int i = 0; i < outputs; ++i) {
      node().add_output("y" + std::to_string(i));
      graph().add_output()->set_name("y" + std::to_string(i));
      graph().mutable_output(i)->mutable_type()->mutable_tensor_type()->set_elem_type(1);
    }
  }

  // Fed when the graph runs.
  TestNode& Input(const char* name, const Tensor& value) {
    node().add_input(name);
    onnx::ValueInfoProto& info = *graph().add_input();
    info.set_name(name);
    auto& type = *info.mutable_type()->mutable_tensor_type();
    type.set_elem_type(OnnxFromDType(value.type().dtype));
    type.mutable_shape();
    for (int64_t extent : value.type().dims) type.mutable_shape()->add_dim()->set_dim_value(extent);
    given_[name] = value;
    return *this;
  }
  // Part of the file.
  TestNode& Initializer(const char* name, const Tensor& value) {
    node().add_input(name);
    StoreTensor(value, name, *graph().add_initializer());
    given_[name] = value;  // as a parameter
    return *this;
  }
  TestNode& ConstantInput(const char* name, const std::vector<int64_t>& values) {
    return Initializer(name, Tensor::FromInts({static_cast<int64_t>(values.size())}, values));
  }
  TestNode& Absent() {
    node().add_input("");
    return *this;
  }

  TestNode& Int(const char* name, int64_t value) {
    Attribute(name, onnx::AttributeProto::INT).set_i(value);
    return *this;
  }
  TestNode& Float(const char* name, float value) {
    Attribute(name, onnx::AttributeProto::FLOAT).set_f(value);
    return *this;
  }
  TestNode& Text(const char* name, const char* value) {
    Attribute(name, onnx::AttributeProto::STRING).set_s(value);
    return *this;
  }
  TestNode& Texts(const char* name, const std::vector<std::string>& values) {
    onnx::AttributeProto& attr = Attribute(name, onnx::AttributeProto::STRINGS);
    for (const std::string& value : values) attr.add_strings(value);
    return *this;
  }
  TestNode& Floats(const char* name, const std::vector<float>& values) {
    onnx::AttributeProto& attr = Attribute(name, onnx::AttributeProto::FLOATS);
    for (float value : values) attr.add_floats(value);
    return *this;
  }
  // Of another set of operators than ai.onnx, with the version given for it.
  TestNode& Domain(const char* domain) {
    node().set_domain(domain);
    model_.mutable_opset_import(0)->set_domain(domain);
    model_.add_opset_import()->set_version(17);
    return *this;
  }
  TestNode& Ints(const char* name, const std::vector<int64_t>& values) {
    onnx::AttributeProto& attr = Attribute(name, onnx::AttributeProto::INTS);
    for (int64_t value : values) attr.add_ints(value);
    return *this;
  }

  Result<OnnxImport> Import() const {
    RIDGE_ASSIGN_OR_RETURN(const OnnxModel model,
                           OnnxModel::Parse(model_.SerializeAsString(), "net"));
    return ImportOnnx(model, {});
  }
  // What import says, "" when it accepts.
  std::string Error() const {
    const Result<OnnxImport> import = Import();
    return import.ok() ? "" : import.status().message();
  }
  // "f32[2,3]" of output i, or the error.
  std::string Type(size_t i = 0) const {
    const Result<OnnxImport> import = Import();
    if (!import.ok()) return import.status().message();
    return TypeToString(import->graph.type(import->graph.outputs().at(i).value));
  }
  // Names of the nodes' operators, in order: "matmul add".
  std::string Operators() const {
    const Result<OnnxImport> import = Import();
    if (!import.ok()) return import.status().message();
    std::string names;
    for (const Node& n : import->graph.nodes()) names += (names.empty() ? "" : " ") + n.op->name;
    return names;
  }
  // Elements of output i; empty after an error.
  std::vector<double> Run(size_t i = 0) const {
    const Result<OnnxImport> import = Import();
    if (!import.ok()) return {};
    std::map<std::string, Tensor> given;
    for (const auto& [name, value] : given_) {
      if (import->graph.FindValue(name) != kNoValue) given[name] = value;
    }
    const Result<std::vector<Tensor>> values = EvaluateGraph(import->graph, given);
    if (!values.ok()) return {};
    const Tensor& y = (*values)[static_cast<size_t>(import->graph.outputs().at(i).value)];
    std::vector<double> elements;
    for (int64_t k = 0; k < y.elements(); ++k) elements.push_back(y.at(k));
    return elements;
  }

 private:
  onnx::GraphProto& graph() { return *model_.mutable_graph(); }
  onnx::NodeProto& node() {
    return graph().node_size() == 0 ? *graph().add_node() : *graph().mutable_node(0);
  }
  onnx::AttributeProto& Attribute(const char* name, onnx::AttributeProto::AttributeType type) {
    onnx::AttributeProto& attr = *node().add_attribute();
    attr.set_name(name);
    attr.set_type(type);
    return attr;
  }

  onnx::ModelProto model_;
  std::map<std::string, Tensor> given_;
};

// 0, 1, 2, .. of these dims.
inline Tensor Counted(Dims dims, DType dtype = DType::kF32) {
  Tensor tensor({dtype, std::move(dims)});
  for (int64_t i = 0; i < tensor.elements(); ++i)
    StoreFromDouble(dtype, tensor.mutable_data(), i, static_cast<double>(i));
  return tensor;
}

}  // namespace ridge
