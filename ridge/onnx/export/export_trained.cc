// ReplaceInitializers: a model's own nodes with other numbers.
#include <fmt/format.h>

#include <algorithm>

#include "onnx/onnx-ml.pb.h"
#include "ridge/onnx/export/export.h"
#include "ridge/onnx/file/tensor.h"

namespace ridge {
namespace {

Status CheckSameType(const std::string& name, const Tensor& before, const Tensor& now) {
  if (before.type() == now.type()) return Status();
  return Status(ErrorCode::kInvalidModel,
                fmt::format("export: the trained '{}' is {}; the model's is {}", name,
                            TypeToString(now.type()), TypeToString(before.type())));
}

// A sparse initializer becomes a dense one of the same name: training fills the zeros.
void MakeDense(onnx::GraphProto& graph, const std::string& name) {
  auto& sparse = *graph.mutable_sparse_initializer();
  for (int i = 0; i < sparse.size(); ++i) {
    if (sparse[i].values().name() != name) continue;
    sparse.DeleteSubrange(i, 1);
    graph.add_initializer()->set_name(name);
    return;
  }
}

Status ReplaceConstant(ExternalFiles& files, onnx::NodeProto& node,
                       const std::map<std::string, Tensor>& values) {
  if (node.op_type() != "Constant" || node.output_size() != 1) return Status();
  const auto found = values.find(node.output(0));
  if (found == values.end()) return Status();
  for (onnx::AttributeProto& attr : *node.mutable_attribute()) {
    if (attr.name() != "value" || !attr.has_t()) continue;
    RIDGE_ASSIGN_OR_RETURN(const Tensor before, CopyTensor(attr.t(), files));
    RIDGE_RETURN_IF_ERROR(CheckSameType(found->first, before, found->second));
    const std::string name = attr.t().name();
    attr.mutable_t()->Clear();
    StoreTensor(found->second, name, *attr.mutable_t());
  }
  return Status();
}

// States of the file's own training step.
Status ReplaceStates(ExternalFiles& files, onnx::GraphProto& algorithm,
                     const std::map<std::string, Tensor>& values) {
  for (onnx::TensorProto& tensor : *algorithm.mutable_initializer()) {
    const auto found = values.find(tensor.name());
    const bool outside = tensor.data_location() == onnx::TensorProto::EXTERNAL;
    if (found == values.end() && !outside) continue;
    RIDGE_ASSIGN_OR_RETURN(const Tensor before, CopyTensor(tensor, files));
    if (found != values.end())
      RIDGE_RETURN_IF_ERROR(CheckSameType(found->first, before, found->second));
    const std::string name = tensor.name();
    tensor.Clear();
    StoreTensor(found != values.end() ? found->second : before, name, tensor);
  }
  return Status();
}

}  // namespace

Result<OnnxDocument> ReplaceInitializers(const OnnxModel& model,
                                         const std::map<std::string, Tensor>& values) {
  OnnxDocument document;
  *document.proto = model.proto();
  onnx::GraphProto& graph = *document.proto->mutable_graph();
  for (const auto& [name, before] : model.initializers()) {
    const auto found = values.find(name);
    if (found == values.end()) continue;
    RIDGE_RETURN_IF_ERROR(CheckSameType(name, before, found->second));
    MakeDense(graph, name);
  }
  for (const onnx::TensorProto& tensor : graph.initializer()) {
    const auto trained = values.find(tensor.name());
    const Tensor& value =
        trained != values.end() ? trained->second : model.initializers().at(tensor.name());
    RIDGE_ASSIGN_OR_RETURN(document.contents[tensor.name()], value.Load());
  }
  for (onnx::NodeProto& node : *graph.mutable_node())
    RIDGE_RETURN_IF_ERROR(ReplaceConstant(model.external_files(), node, values));
  for (onnx::TrainingInfoProto& info : *document.proto->mutable_training_info())
    RIDGE_RETURN_IF_ERROR(ReplaceStates(model.external_files(), *info.mutable_algorithm(), values));
  return document;
}

}  // namespace ridge
