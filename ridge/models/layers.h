// Layers of the built-in models: parameters with PyTorch's names and starting values.
//
// Shapes: images are [B,C,H,W].  `name` is the module's name in PyTorch ("layer1.0.conv1"): the
// parameters are NAME.weight, NAME.bias.
#pragma once
#include <optional>
#include <string>

#include "ridge/graph/builder.h"
#include "ridge/models/model.h"

namespace ridge {

struct ConvOptions {
  int64_t kernel = 3;
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t groups = 1;
  bool bias = true;
  // Normal with variance 2 / (channels out * kernel^2), instead of uniform in +-1/sqrt(fan in).
  bool kaiming_normal_fan_out = false;
  double deviation = 0;                             // not 0: normal with it, and a zero bias
  std::optional<double> bias_start = std::nullopt;  // of all channels, instead of the above
};
// x [B,C,H,W] -> [B,channels,H',W'].
Value Conv(GraphBuilder& b, Value x, int64_t channels, const std::string& name,
           const ConvOptions& options);

struct BatchNormOptions {
  double epsilon = 1e-5;
  double momentum = 0.1;  // weight of the new batch, PyTorch's meaning
};
// Normalizes over all but dimension 1.  States NAME.running_mean and NAME.running_var become
// 0.9 * old + 0.1 * (the batch's mean, and its variance with n-1), as torch.nn.BatchNorm2d.
Value BatchNorm(GraphBuilder& b, Value x, const std::string& name,
                const BatchNormOptions& options = {});

// x [B,in,H,W] -> [B,channels,kernel*H,kernel*W]: a transposed convolution whose stride is its
// kernel, with parameters NAME.weight [in,channels,kernel,kernel] and NAME.bias.
Value UpConv(GraphBuilder& b, Value x, int64_t channels, int64_t kernel, const std::string& name);

// Over the last dimension, with NAME.weight and NAME.bias.
Value LayerNorm(GraphBuilder& b, Value x, double epsilon, const std::string& name);

// [B, .., out] with starting values as Linear, or normal with `deviation` and a zero bias.
struct LinearOptions {
  bool bias = true;
  double deviation = 0;  // 0: uniform in +-1/sqrt(in)
};
Value Linear(GraphBuilder& b, Value x, int64_t out, const std::string& name,
             const LinearOptions& options);

// Rows of a table NAME.weight [rows,width], normal with `deviation`, at indices.
Value Embedding(GraphBuilder& b, Value indices, int64_t rows, int64_t width, double deviation,
                DType dtype, const std::string& name);

// qkv [B,T,3C], heads of q, k and v one after the other -> [B,T,C].  A mask, where there is one,
// broadcasts to [B,heads,T,T].
Value SelfAttention(GraphBuilder& b, Value qkv, int64_t heads, bool causal, const std::string& name,
                    Value visible = {});

// Input `position_ids` i64[B,T]: the number of each token in its text, where a sample holds
// several.
Value PositionInput(GraphBuilder& b, const ModelOptions& options, int64_t length);

// bool [B,1,T,T]: whether two tokens are of one text, by position_ids.
Value SameText(GraphBuilder& b, Value position_ids);

// [B,T,heads * D] -> [B,heads,T,D], as the attention operator reads it, and back.
Value SplitHeads(Value x, int64_t heads);
Value JoinHeads(Value x);

// Input `tokens` i64[batch, length].
Value TokenInput(GraphBuilder& b, const ModelOptions& options, int64_t length);

// Mean of the cross entropy of logits [..., C] over the labels [...] that are not -100, PyTorch's
// mark for places that do not count (padding, pixels without a class); 0 when none counts.
Value CrossEntropyMean(GraphBuilder& b, Value logits, Value label);

// Input `label` i64[batch, length], outputs `logits` [B,T,V] and `loss`, the mean over all places
// that count.
void LanguageModelEnd(GraphBuilder& b, const ModelOptions& options, Value logits);

Value MaxPool(Value x, int64_t kernel, int64_t stride, int64_t padding, const std::string& name);

// [B, ...] -> [B, product of the rest].
Value Flatten(Value x);

// Input `image` [batch, sample...] of the options' dtype.
Value ImageInput(GraphBuilder& b, const ModelOptions& options, const Dims& sample);

// Input `label`, outputs `logits` and `loss`, the mean over the batch of
// log(sum(exp(logits))) - logits[label].
void ClassifierEnd(GraphBuilder& b, const ModelOptions& options, Value logits);

}  // namespace ridge
