#include "ridge/models/layers.h"

#include <fmt/format.h>

#include <cmath>
#include <numeric>

namespace ridge {
namespace {

Init ConvInit(const ConvOptions& options, int64_t in, int64_t out) {
  if (options.deviation != 0) return Init::Normal(options.deviation);
  const auto taps = static_cast<double>(options.kernel * options.kernel);
  if (options.kaiming_normal_fan_out) {
    const auto groups = static_cast<double>(options.groups);
    return Init::Normal(std::sqrt(2 * groups / (static_cast<double>(out) * taps)));
  }
  return Init::Uniform(1 / std::sqrt(static_cast<double>(in) * taps));
}

// running = (1 - momentum) * running + momentum * correction * statistic
void UpdateRunning(GraphBuilder& b, Value running, Value statistic, double momentum,
                   double correction) {
  const Value fresh = statistic * (momentum * correction);
  b.Update(running, running * (1 - momentum) + fresh);
}

}  // namespace

Value Conv(GraphBuilder& b, Value x, int64_t channels, const std::string& name,
           const ConvOptions& options) {
  if (!b.ok()) return {};
  const TensorType in = x.type();
  const int64_t k = options.kernel;
  const int64_t inputs = in.dims[1] / options.groups;
  const Init init = ConvInit(options, inputs, channels);
  const Value weight = b.Parameter(name + ".weight", {in.dtype, {channels, inputs, k, k}}, init);
  Value bias;
  if (options.bias) {
    const double fan_in = static_cast<double>(inputs * k * k);
    Init start = options.deviation != 0 ? Init::Zeros() : Init::Uniform(1 / std::sqrt(fan_in));
    if (options.bias_start) start = Init::Constant(*options.bias_start);
    bias = b.Parameter(name + ".bias", {in.dtype, {channels}}, start);
  }
  const int64_t p = options.padding;
  return Op("conv", {x, weight, bias},
            {{"stride", {options.stride, options.stride}},
             {"padding", {p, p, p, p}},
             {"groups", options.groups}},
            name);
}

Value BatchNorm(GraphBuilder& b, Value x, const std::string& name,
                const BatchNormOptions& options) {
  if (!b.ok()) return {};
  const TensorType in = x.type();
  const int64_t channels = in.dims[1];
  const int64_t per_channel = channels == 0 ? 0 : in.elements() / channels;
  if (per_channel < 2) {
    b.Fail(Status(ErrorCode::kInvalidModel,
                  fmt::format("batch_norm '{}': x is {}: {} value per channel, training needs at "
                              "least 2. hint: a larger batch or image",
                              name, TypeToString(in), per_channel)));
    return {};
  }
  const TensorType type = {in.dtype, {channels}};
  const Value scale = b.Parameter(name + ".weight", type, Init::Constant(1));
  const Value shift = b.Parameter(name + ".bias", type, Init::Zeros());
  const Value mean = b.State(name + ".running_mean", type, Init::Zeros(), ValueRole::kStatistic);
  const Value var = b.State(name + ".running_var", type, Init::Constant(1), ValueRole::kStatistic);
  const std::vector<Value> out =
      OpOutputs("batch_norm", {x, scale, shift}, {{"epsilon", options.epsilon}}, name);
  if (!b.ok()) return {};
  const auto n = static_cast<double>(per_channel);
  UpdateRunning(b, mean, out[1], options.momentum, 1);
  UpdateRunning(b, var, out[2], options.momentum, n / (n - 1));
  return out[0];
}

Value MaxPool(Value x, int64_t kernel, int64_t stride, int64_t padding, const std::string& name) {
  return OpOutputs("max_pool", {x},
                   {{"kernel", {kernel, kernel}},
                    {"stride", {stride, stride}},
                    {"padding", std::vector<int64_t>(4, padding)}},
                   name)[0];
}

Value UpConv(GraphBuilder& b, Value x, int64_t channels, int64_t kernel, const std::string& name) {
  if (!b.ok()) return {};
  const TensorType in = x.type();
  // PyTorch's fan in of a transposed weight is that of its second dimension.
  const Init init = Init::Uniform(1 / std::sqrt(static_cast<double>(channels * kernel * kernel)));
  const Value weight =
      b.Parameter(name + ".weight", {in.dtype, {in.dims[1], channels, kernel, kernel}}, init);
  const Value bias = b.Parameter(name + ".bias", {in.dtype, {channels}}, init);
  const Dims out = {in.dims[0], channels, in.dims[2] * kernel, in.dims[3] * kernel};
  const Value y =
      Op("conv_grad_input", {x, weight}, {{"input_dims", out}, {"stride", {kernel, kernel}}}, name);
  return y + Reshape(bias, {1, channels, 1, 1});
}

Value LayerNorm(GraphBuilder& b, Value x, double epsilon, const std::string& name) {
  if (!b.ok()) return {};
  const TensorType type = {x.dtype(), {x.dims().back()}};
  const Value scale = b.Parameter(name + ".weight", type, Init::Constant(1));
  const Value shift = b.Parameter(name + ".bias", type, Init::Zeros());
  return OpOutputs("layer_norm", {x, scale, shift}, {{"epsilon", epsilon}}, name)[0];
}

Value Linear(GraphBuilder& b, Value x, int64_t out, const std::string& name,
             const LinearOptions& options) {
  if (!b.ok() || options.deviation == 0) return b.Linear(x, out, name, options.bias);
  const TensorType in = x.type();
  const Value weight = b.Parameter(name + ".weight", {in.dtype, {out, in.dims.back()}},
                                   Init::Normal(options.deviation));
  Value bias;
  if (options.bias) bias = b.Parameter(name + ".bias", {in.dtype, {out}}, Init::Zeros());
  return Op("matmul", {x, weight, bias}, {{"transpose_b", 1}}, name);
}

Value Embedding(GraphBuilder& b, Value indices, int64_t rows, int64_t width, double deviation,
                DType dtype, const std::string& name) {
  const Value table =
      b.Parameter(name + ".weight", {dtype, {rows, width}}, Init::Normal(deviation));
  return Op("gather", {table, indices}, {}, name);
}

Value SplitHeads(Value x, int64_t heads) {
  if (!x.valid()) return {};
  const Dims dims = x.dims();
  return Transpose(Reshape(x, {dims[0], dims[1], heads, dims[2] / heads}), {0, 2, 1, 3});
}

Value JoinHeads(Value x) {
  if (!x.valid()) return {};
  const Dims dims = x.dims();
  return Reshape(Transpose(x, {0, 2, 1, 3}), {dims[0], dims[2], dims[1] * dims[3]});
}

namespace {

// Part `i` of three in [B,T,3,H,D] -> [B,H,T,D].
Value Heads(GraphBuilder& b, Value qkv, int64_t i) {
  const Value part = Slice(qkv, 2, i, i + 1);
  if (!b.ok()) return {};
  const Dims dims = part.dims();
  return Transpose(Reshape(part, {dims[0], dims[1], dims[3], dims[4]}), {0, 2, 1, 3});
}

}  // namespace

Value SelfAttention(GraphBuilder& b, Value qkv, int64_t heads, bool causal, const std::string& name,
                    Value visible) {
  if (!b.ok()) return {};
  const Dims dims = qkv.dims();
  const int64_t width = dims[2] / 3 / heads;
  const Value split = Reshape(qkv, {dims[0], dims[1], 3, heads, width});
  const Value y = OpOutputs(
      "attention", {Heads(b, split, 0), Heads(b, split, 1), Heads(b, split, 2), visible},
      {{"scale", 1 / std::sqrt(static_cast<double>(width))}, {"causal", causal}}, name)[0];
  return JoinHeads(y);
}

Value PositionInput(GraphBuilder& b, const ModelOptions& options, int64_t length) {
  return b.Input("position_ids", {DType::kI64, {options.batch, length}}, {"batch", ""});
}

// Texts begin at different places of a row.
Value SameText(GraphBuilder& b, Value position_ids) {
  if (!b.ok()) return {};
  const int64_t length = position_ids.dims()[1];
  Tensor places({DType::kI64, {length}});
  std::iota(places.as_mutable<int64_t>(), places.as_mutable<int64_t>() + length, int64_t{0});
  const Value begins = b.Constant(std::move(places), "places") - position_ids;
  return Equal(Reshape(begins, {0, 1, length, 1}), Reshape(begins, {0, 1, 1, length}));
}

Value CrossEntropyMean(GraphBuilder& b, Value logits, Value label) {
  constexpr int64_t kIgnored = -100;
  const Value losses =
      Op("softmax_cross_entropy", {logits, label}, {{"ignore_index", kIgnored}}, "losses");
  if (!b.ok()) return {};
  const DType dtype = losses.dtype();
  const Value ignored = ScalarLike(label, static_cast<double>(kIgnored));
  const Value counts = Cast(NotEqual(label, ignored), dtype);
  const Value count = Sum(counts);
  return Op("div", {Sum(losses), Maximum(count, b.Scalar(dtype, 1))}, {}, "loss");
}

Value TokenInput(GraphBuilder& b, const ModelOptions& options, int64_t length) {
  return b.Input("tokens", {DType::kI64, {options.batch, length}}, {"batch", ""});
}

void LanguageModelEnd(GraphBuilder& b, const ModelOptions& options, Value logits) {
  if (!b.ok()) return;
  const int64_t length = logits.dims()[1];
  const Value label = b.Input("label", {DType::kI64, {options.batch, length}}, {"batch", ""});
  b.Output("logits", logits);
  b.Output("loss", CrossEntropyMean(b, logits, label));
}

Value Flatten(Value x) { return Reshape(x, {0, -1}); }

Value ImageInput(GraphBuilder& b, const ModelOptions& options, const Dims& sample) {
  Dims dims = {options.batch};
  dims.insert(dims.end(), sample.begin(), sample.end());
  std::vector<std::string> names(dims.size());
  names[0] = "batch";
  if (Status status = CheckDims(dims); !status.ok()) b.Fail(std::move(status));
  return b.Input("image", {options.dtype, std::move(dims)}, std::move(names));
}

void ClassifierEnd(GraphBuilder& b, const ModelOptions& options, Value logits) {
  const Value label = b.Input("label", {DType::kI64, {options.batch}}, {"batch"});
  const Value losses = Op("softmax_cross_entropy", {logits, label}, {}, "losses");
  const Value loss = Op("reduce_mean", {losses}, {}, "loss");
  b.Output("logits", logits);
  b.Output("loss", loss);
}

}  // namespace ridge
