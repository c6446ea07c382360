// OnnxMutator: changes to a model that keep it a message.
//
// Bytes changed blindly rarely reach a converter: they break the message, a name or an operator's
// own rules first.  These changes are of the file's meaning: an operator, an extent, an attribute,
// an input that is known, a node copied into a branch.
#pragma once
#include <cstdint>
#include <random>

#include "onnx/onnx-ml.pb.h"

namespace ridge {

class OnnxMutator {
 public:
  explicit OnnxMutator(uint32_t seed) : random_(seed) {}

  // One to four changes.
  void Mutate(onnx::ModelProto& model);
  // Puts a node of `other` into `model`, with values of `model` as its inputs.
  void Splice(const onnx::ModelProto& other, onnx::ModelProto& model);

 private:
  int Below(int count);  // in [0, count); 0 for 0
  bool OneIn(int count) { return Below(count) == 0; }
  int64_t Integer();
  float Number();

  void ChangeOne(onnx::ModelProto& model);
  // The main graph, or one inside it.
  onnx::GraphProto& AnyGraph(onnx::ModelProto& model);
  std::string AnyName(const onnx::GraphProto& graph);

  void ChangeOpset(onnx::ModelProto& model);
  void ChangeType(onnx::GraphProto& graph);
  void ChangeShape(onnx::TensorShapeProto& shape);
  void ChangeTensor(onnx::TensorProto& tensor);
  void MakeKnown(onnx::GraphProto& graph);
  void ChangeOperator(onnx::NodeProto& node);
  void ChangeInputs(const onnx::GraphProto& graph, onnx::NodeProto& node);
  void ChangeOutputs(onnx::GraphProto& graph, onnx::NodeProto& node);
  void ChangeAttributes(onnx::NodeProto& node);
  void ChangeAttribute(onnx::AttributeProto& attribute);
  void CopyNode(onnx::GraphProto& graph);
  void MoveIntoBranches(onnx::GraphProto& graph);
  void MoveIntoLoop(onnx::GraphProto& graph);
  void MoveIntoFunction(onnx::ModelProto& model);

  std::mt19937 random_;
};

}  // namespace ridge
