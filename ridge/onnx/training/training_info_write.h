// AddTrainingStep: writes a training step (TrainingInfoProto) into a model that is exported.
#pragma once
#include <string>
#include <vector>

#include "ridge/core/shape.h"
#include "ridge/onnx/export/export.h"

namespace ridge {

struct OnnxTrainingStep {
  // "cross_entropy" (adds input `label` i64; classes are dimension 1, but the last of three), "mse"
  // or "bce" (adds `target`), or "": the output is the loss.
  std::string loss_kind;
  std::string output;  // a float output of the model
  Dims output_dims;    // its extents at some batch, for those that the model does not say
  std::vector<std::string> trained;  // initializers that are updated
  std::string optimizer = "adam";    // sgd, adam, adamw
  double rate = 1e-3;
  double momentum = 0;  // sgd
  bool nesterov = false;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 0;
  // Of a cross entropy, as WithLossShape (learn/loss_shape.h) has them.
  double label_smoothing = 0, focal_gamma = 0;
  std::vector<double> class_weights = {};  // one a class; empty: none

  bool shaped() const { return label_smoothing > 0 || focal_gamma > 0; }
};

inline constexpr int64_t kCrossEntropyOpset = 12;

// The algorithm is loss, Gradient, and one optimizer node a tensor.  The rate and the count of
// updates are initializers named `training.rate` and `training.step` (1 at the first update), the
// optimizer's states NAME.momentum, NAME.m, NAME.v; `initialization` makes all but the
// rate anew.  Where the model has one of these names, ours gets a number behind it.  adam's epsilon
// is ONNX's, added to sqrt(v) before the correction of v.  A step that the document has is
// replaced. Fails with kInvalidArgument for an output or initializer that is not there or not
// float, or class weights of another number than classes, and with kUnsupported for a cross entropy
// in an opset below kCrossEntropyOpset.
Status AddTrainingStep(const OnnxTrainingStep& step, OnnxDocument& document);

}  // namespace ridge
