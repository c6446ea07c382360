// For tests: a model of one node, run on given inputs by the operators' references.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "onnx/onnx-ml.pb.h"
#include "ridge/graph/interpret.h"
#include "ridge/onnx/file/tensor.h"
#include "ridge/onnx/import/import.h"

namespace ridge {

// Integers of any type, row-major.
inline Tensor Numbers(DType dtype, Dims dims, const std::vector<double>& values) {
  Tensor tensor({dtype, std::move(dims)});
  for (size_t i = 0; i < values.size(); ++i)
    StoreFromDouble(dtype, tensor.mutable_data(), static_cast<int64_t>(i), values[i]);
  return tensor;
}

class OneNode {
 public:
  OneNode(const std::string& op, int64_t opset) {
    model_.set_ir_version(10);
    model_.add_opset_import()->set_version(opset);
    model_.mutable_graph()->set_name("one");
    node_ = model_.mutable_graph()->add_node();
    node_->set_op_type(op);
    node_->set_name("n");
    node_->add_output("y");
    model_.mutable_graph()->add_output()->set_name("y");
    model_.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type()->set_elem_type(
        onnx::TensorProto::FLOAT);
  }

  // An input that the run is given; `known`: an initializer.
  OneNode& Input(const Tensor& tensor, bool known = false) {
    const std::string name = "x" + std::to_string(node_->input_size());
    node_->add_input(name);
    if (known) {
      StoreTensor(tensor, name, *model_.mutable_graph()->add_initializer());
      return *this;
    }
    given_[name] = tensor;
    onnx::ValueInfoProto& info = *model_.mutable_graph()->add_input();
    info.set_name(name);
    auto& type = *info.mutable_type()->mutable_tensor_type();
    type.set_elem_type(OnnxFromDType(tensor.type().dtype));
    type.mutable_shape();
    for (const int64_t extent : tensor.type().dims)
      type.mutable_shape()->add_dim()->set_dim_value(extent);
    return *this;
  }
  OneNode& Absent() {
    node_->add_input("");
    return *this;
  }
  OneNode& Integer(const std::string& name, int64_t value) {
    onnx::AttributeProto& attr = Attribute(name, onnx::AttributeProto::INT);
    attr.set_i(value);
    return *this;
  }
  OneNode& Number(const std::string& name, float value) {
    Attribute(name, onnx::AttributeProto::FLOAT).set_f(value);
    return *this;
  }
  OneNode& Text(const std::string& name, const std::string& value) {
    Attribute(name, onnx::AttributeProto::STRING).set_s(value);
    return *this;
  }

  Result<Tensor> Run() const {
    RIDGE_ASSIGN_OR_RETURN(const OnnxModel model,
                           OnnxModel::Parse(model_.SerializeAsString(), "one.onnx"));
    RIDGE_ASSIGN_OR_RETURN(const OnnxImport import, ImportOnnx(model, {}));
    RIDGE_ASSIGN_OR_RETURN(const std::vector<Tensor> values, EvaluateGraph(import.graph, given_));
    return values[static_cast<size_t>(import.graph.outputs()[0].value)];
  }
  // Fails the test when it does not run.
  std::vector<double> Values() const {
    const Result<Tensor> y = Run();
    EXPECT_TRUE(y.ok()) << y.status().message();
    std::vector<double> values;
    for (int64_t i = 0; y.ok() && i < y->elements(); ++i) values.push_back(y->at(i));
    return values;
  }
  // The message, without the file's name.
  std::string Refusal() const {
    const Result<Tensor> y = Run();
    const std::string file = "one.onnx: ";
    const std::string message = y.ok() ? "answered" : y.status().message();
    return message.rfind(file, 0) == 0 ? message.substr(file.size()) : message;
  }

 private:
  onnx::AttributeProto& Attribute(const std::string& name,
                                  onnx::AttributeProto::AttributeType type) {
    onnx::AttributeProto& attr = *node_->add_attribute();
    attr.set_name(name);
    attr.set_type(type);
    return attr;
  }

  onnx::ModelProto model_;
  onnx::NodeProto* node_;
  std::map<std::string, Tensor> given_;
};

}  // namespace ridge
