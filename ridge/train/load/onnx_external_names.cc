#include "ridge/train/load/onnx_external_names.h"

#include <set>

#include "onnx/onnx-ml.pb.h"

namespace ridge {
namespace {

// Subgraphs nest no deeper than protobuf's own limit, which parsing has checked.
class Collector {
 public:
  void Add(const onnx::GraphProto& graph) {
    for (const onnx::TensorProto& tensor : graph.initializer()) Add(tensor);
    for (const onnx::SparseTensorProto& tensor : graph.sparse_initializer()) Add(tensor);
    for (const onnx::NodeProto& node : graph.node()) Add(node);
  }

  void Add(const onnx::NodeProto& node) {
    for (const onnx::AttributeProto& attr : node.attribute()) Add(attr);
  }

  void Add(const onnx::AttributeProto& attr) {
    if (attr.has_t()) Add(attr.t());
    if (attr.has_g()) Add(attr.g());
    if (attr.has_sparse_tensor()) Add(attr.sparse_tensor());
    for (const onnx::TensorProto& tensor : attr.tensors()) Add(tensor);
    for (const onnx::GraphProto& graph : attr.graphs()) Add(graph);
    for (const onnx::SparseTensorProto& tensor : attr.sparse_tensors()) Add(tensor);
  }

  std::vector<std::string> names() const { return {names_.begin(), names_.end()}; }

 private:
  void Add(const onnx::SparseTensorProto& tensor) {
    Add(tensor.values());
    Add(tensor.indices());
  }

  void Add(const onnx::TensorProto& tensor) {
    if (tensor.data_location() != onnx::TensorProto::EXTERNAL) return;
    for (const onnx::StringStringEntryProto& entry : tensor.external_data()) {
      if (entry.key() == "location") names_.insert(entry.value());
    }
  }

  std::set<std::string> names_;
};

}  // namespace

std::vector<std::string> OnnxExternalNames(const onnx::ModelProto& model) {
  Collector collector;
  collector.Add(model.graph());
  for (const onnx::FunctionProto& function : model.functions()) {
    for (const onnx::NodeProto& node : function.node()) collector.Add(node);
    for (const onnx::AttributeProto& attr : function.attribute_proto()) collector.Add(attr);
  }
  for (const onnx::TrainingInfoProto& info : model.training_info()) {
    collector.Add(info.initialization());
    collector.Add(info.algorithm());
  }
  return collector.names();
}

}  // namespace ridge
