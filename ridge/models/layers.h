// Layers of the built-in models: parameters with PyTorch's names and starting values.
//
// Shapes: images are [B,C,H,W].  `name` is the module's name in PyTorch ("layer1.0.conv1"): the
// parameters are NAME.weight, NAME.bias.
#pragma once
#include <string>

#include "ridge/graph/builder.h"
#include "ridge/models/model.h"

namespace ridge {

struct ConvOptions {
  int64_t kernel = 3;
  int64_t stride = 1;
  int64_t padding = 0;
  bool bias = true;
  // Normal with variance 2 / (channels out * kernel^2), instead of uniform in +-1/sqrt(fan in).
  bool kaiming_normal_fan_out = false;
};
// x [B,C,H,W] -> [B,channels,H',W'].
Value Conv(GraphBuilder& b, Value x, int64_t channels, const std::string& name,
           const ConvOptions& options);

// Normalizes over all but dimension 1.  States NAME.running_mean and NAME.running_var become
// 0.9 * old + 0.1 * (the batch's mean, and its variance with n-1), as torch.nn.BatchNorm2d.
Value BatchNorm(GraphBuilder& b, Value x, const std::string& name);

Value MaxPool(GraphBuilder& b, Value x, int64_t kernel, int64_t stride, int64_t padding,
              const std::string& name);

// [B, ...] -> [B, product of the rest].
Value Flatten(GraphBuilder& b, Value x);

// Input `image` [batch, sample...] of the options' dtype.
Value ImageInput(GraphBuilder& b, const ModelOptions& options, const Dims& sample);

// Input `label`, outputs `logits` and `loss`, the mean over the batch of
// log(sum(exp(logits))) - logits[label].
void ClassifierEnd(GraphBuilder& b, const ModelOptions& options, Value logits);

}  // namespace ridge
