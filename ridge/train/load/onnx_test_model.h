// Small ONNX files for the tests of this folder.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "onnx/onnx-ml.pb.h"
#include "ridge/core/files.h"
#include "ridge/core/tensor.h"
#include "ridge/onnx/file/tensor.h"

namespace ridge {

// An open extent is a name, a fixed one its digits, and "?" is open without a name.
inline void AddOnnxInfo(onnx::ValueInfoProto& info, const std::string& name, int32_t elem_type,
                        const std::vector<std::string>& dims) {
  info.set_name(name);
  auto& type = *info.mutable_type()->mutable_tensor_type();
  type.set_elem_type(elem_type);
  auto& shape = *type.mutable_shape();
  for (const std::string& dim : dims) {
    auto& to = *shape.add_dim();
    if (dim == "?") continue;
    if (dim.find_first_not_of("0123456789") == std::string::npos) {
      to.set_dim_value(std::stoll(dim));
    } else {
      to.set_dim_param(dim);
    }
  }
}

inline onnx::NodeProto& AddOnnxNode(onnx::GraphProto& graph, const std::string& op,
                                    const std::vector<std::string>& inputs,
                                    const std::string& output) {
  onnx::NodeProto& node = *graph.add_node();
  node.set_op_type(op);
  node.set_name(output);
  for (const std::string& name : inputs) node.add_input(name);
  node.add_output(output);
  return node;
}

inline onnx::ModelProto EmptyOnnxModel() {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  model.mutable_graph()->set_name("net");
  return model;
}

inline void SaveOnnx(const onnx::ModelProto& model, const std::string& path) {
  const Status status = WriteFileAtomically(path, model.SerializeAsString());
  EXPECT_TRUE(status.ok()) << status.message();
}

}  // namespace ridge
