// Which float initializers of an ONNX file are trained.
//
// ONNX does not say what a parameter is.  In this order:
//   1. a --trainable pattern, then a --freeze pattern;
//   2. running statistics of batch norm are states;
//   3. PyTorch's exporter writes a signature: what it calls PARAMETER is trained, what it calls
//      BUFFER or CONSTANT is not; a name it lacks is trained when an operator reads it as a weight
//      (below) or when it lies in a module that has parameters ("conv1.bias" beside
//      "conv1.weight");
//   4. without a signature all are trained, but single numbers and masks (each element 0 or -100
//      and below) whose names were made by a tool ("/Constant_3_output_0", "const_fold_opt__23",
//      "onnx::Mul_7", "val_14"; a scalar "norm/add/y:0" of TensorFlow) and that no operator reads
//      as a weight.
// Some exporters (Paddle's, traced functions) keep weights in Constant nodes.  In a file without
// float initializers of more than one element they are trained like initializers: all but single
// numbers that no operator reads as a weight.
// A weight is what Conv, Gemm, MatMul, PRelu, the normalizations and the recurrent operators read
// in the place of their weights and biases.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ridge/onnx/import/import.h"

namespace ridge {

class InitializerRoles {
 public:
  InitializerRoles(const OnnxModel& model, const OnnxImportOptions& options);
  bool Trained(const std::string& name, const Tensor& tensor) const;
  // The same without `all_parameters`: whether training would change it.
  bool Learns(const std::string& name, const Tensor& tensor) const;
  // Whether a Constant node of the main graph is to be taken for an initializer.
  bool IsInitializer(const std::string& constant, const Tensor& tensor) const;

 private:
  bool TrainedByDefault(const std::string& name, const Tensor& tensor) const;

  const OnnxImportOptions& options_;
  std::set<std::string> weights_;  // read as a weight by some node
  bool has_signature_ = false;
  bool weights_are_constants_ = true;
  std::set<std::string> parameters_, fixed_;  // by the signature
  std::set<std::string> modules_;             // "layer1.0.conv1" of each parameter
};

}  // namespace ridge
