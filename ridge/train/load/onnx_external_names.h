// OnnxExternalNames: which files beside an ONNX model hold tensors of it.
#pragma once
#include <string>
#include <vector>

namespace onnx {
class ModelProto;
}

namespace ridge {

// As the model writes them (relative paths), each once, sorted.  Tensors lie in graphs, in
// attributes of nodes, in their subgraphs, in functions and in training steps.
std::vector<std::string> OnnxExternalNames(const onnx::ModelProto& model);

}  // namespace ridge
