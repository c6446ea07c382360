#include "tests/onnx/to_f64.h"

#include "onnx/onnx-ml.pb.h"
#include "ridge/onnx/file/tensor.h"

namespace ridge {
namespace {

Status Convert(onnx::TensorProto& proto) {
  if (proto.data_type() != onnx::TensorProto::FLOAT) return Status();
  RIDGE_ASSIGN_OR_RETURN(const Tensor tensor, CopyTensor(proto, ""));
  const std::string name = proto.name();
  proto.Clear();
  StoreTensor(TensorToF64(tensor), name, proto);
  return Status();
}

void Convert(onnx::TypeProto& type) {
  if (type.tensor_type().elem_type() == onnx::TensorProto::FLOAT) {
    type.mutable_tensor_type()->set_elem_type(onnx::TensorProto::DOUBLE);
  }
}

Status Convert(onnx::GraphProto& graph);

// Attributes that name an element type.
bool NamesType(const std::string& name) {
  return name == "to" || name == "dtype" || name == "output_dtype" || name == "output_datatype" ||
         name == "softmax_precision" || name == "stash_type";
}

// Number lists are f32 in ONNX; as constants they would stay so.
Status ConvertFloats(onnx::NodeProto& node, onnx::AttributeProto& attr) {
  if (node.op_type() != "Constant") return Status();
  if (attr.name() != "value_float" && attr.name() != "value_floats") return Status();
  Tensor tensor(
      TensorType{DType::kF64, attr.name() == "value_float" ? Dims{} : Dims{attr.floats_size()}});
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    tensor.as_mutable<double>()[i] =
        attr.name() == "value_float" ? attr.f() : attr.floats(static_cast<int>(i));
  }
  attr.Clear();
  attr.set_name("value");
  attr.set_type(onnx::AttributeProto::TENSOR);
  StoreTensor(tensor, "value", *attr.mutable_t());
  return Status();
}

Status Convert(onnx::NodeProto& node) {
  for (auto& attr : *node.mutable_attribute()) {
    if (attr.has_t()) RIDGE_RETURN_IF_ERROR(Convert(*attr.mutable_t()));
    if (attr.has_g()) RIDGE_RETURN_IF_ERROR(Convert(*attr.mutable_g()));
    if (NamesType(attr.name()) && attr.i() == onnx::TensorProto::FLOAT) {
      attr.set_i(onnx::TensorProto::DOUBLE);
    }
    RIDGE_RETURN_IF_ERROR(ConvertFloats(node, attr));
  }
  // Without a value it makes f32.
  if (node.op_type() == "ConstantOfShape" && node.attribute_size() == 0) {
    auto& attr = *node.add_attribute();
    attr.set_name("value");
    attr.set_type(onnx::AttributeProto::TENSOR);
    StoreTensor(Tensor(TensorType{DType::kF64, {1}}), "value", *attr.mutable_t());
  }
  return Status();
}

Status Convert(onnx::GraphProto& graph) {
  for (auto& value : *graph.mutable_input()) Convert(*value.mutable_type());
  for (auto& value : *graph.mutable_output()) Convert(*value.mutable_type());
  graph.clear_value_info();
  for (auto& tensor : *graph.mutable_initializer()) RIDGE_RETURN_IF_ERROR(Convert(tensor));
  for (auto& node : *graph.mutable_node()) RIDGE_RETURN_IF_ERROR(Convert(node));
  return Status();
}

}  // namespace

Status ModelToF64(onnx::ModelProto& model) {
  for (auto& function : *model.mutable_functions()) {
    for (auto& node : *function.mutable_node()) RIDGE_RETURN_IF_ERROR(Convert(node));
  }
  return Convert(*model.mutable_graph());
}

Tensor TensorToF64(const Tensor& tensor) {
  if (tensor.type().dtype != DType::kF32) return tensor;
  Tensor wide(TensorType{DType::kF64, tensor.type().dims});
  for (int64_t i = 0; i < wide.elements(); ++i) wide.as_mutable<double>()[i] = tensor.at(i);
  return wide;
}

}  // namespace ridge
