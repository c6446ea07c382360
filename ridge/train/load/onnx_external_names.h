// OnnxExternalNames: the external files that hold an ONNX model's tensors.
#pragma once
#include <string>
#include <vector>

namespace onnx {
class ModelProto;
}

namespace ridge {

// As the model writes them (relative paths), each once, sorted.  Covers tensors in graphs, node
// attributes, subgraphs, functions and training steps.
std::vector<std::string> OnnxExternalNames(const onnx::ModelProto& model);

}  // namespace ridge
