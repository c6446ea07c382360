#include "ridge/models/layers.h"

#include <fmt/format.h>

#include <cmath>

namespace ridge {
namespace {

constexpr double kMomentum = 0.1;  // weight of the new batch, PyTorch's meaning

Init ConvInit(const ConvOptions& options, int64_t in, int64_t out) {
  const auto taps = static_cast<double>(options.kernel * options.kernel);
  if (options.kaiming_normal_fan_out)
    return Init::Normal(std::sqrt(2 / (static_cast<double>(out) * taps)));
  return Init::Uniform(1 / std::sqrt(static_cast<double>(in) * taps));
}

// running = 0.9 * running + 0.1 * correction * statistic
void UpdateRunning(GraphBuilder& b, Value running, Value statistic, double correction) {
  b.Update(running, b.Add(b.MulScalar(running, 1 - kMomentum),
                          b.MulScalar(statistic, kMomentum * correction)));
}

}  // namespace

Value Conv(GraphBuilder& b, Value x, int64_t channels, const std::string& name,
           const ConvOptions& options) {
  if (!b.ok()) return {};
  const TensorType in = b.type(x);
  const int64_t k = options.kernel;
  const Init init = ConvInit(options, in.dims[1], channels);
  const Value weight =
      b.Parameter(name + ".weight", {in.dtype, {channels, in.dims[1], k, k}}, init);
  Value bias;
  if (options.bias) {
    const double fan_in = static_cast<double>(in.dims[1] * k * k);
    bias =
        b.Parameter(name + ".bias", {in.dtype, {channels}}, Init::Uniform(1 / std::sqrt(fan_in)));
  }
  const int64_t p = options.padding;
  return b.Op("conv2d", {x, weight, bias},
              {{"stride", std::vector<int64_t>{options.stride, options.stride}},
               {"padding", std::vector<int64_t>{p, p, p, p}}},
              name);
}

Value BatchNorm(GraphBuilder& b, Value x, const std::string& name) {
  if (!b.ok()) return {};
  const TensorType in = b.type(x);
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
  const std::vector<Value> out = b.OpOutputs("batch_norm", {x, scale, shift}, {}, name);
  if (!b.ok()) return {};
  const auto n = static_cast<double>(per_channel);
  UpdateRunning(b, mean, out[1], 1);
  UpdateRunning(b, var, out[2], n / (n - 1));
  return out[0];
}

Value MaxPool(GraphBuilder& b, Value x, int64_t kernel, int64_t stride, int64_t padding,
              const std::string& name) {
  return b.OpOutputs("max_pool", {x},
                     {{"kernel", std::vector<int64_t>{kernel, kernel}},
                      {"stride", std::vector<int64_t>{stride, stride}},
                      {"padding", std::vector<int64_t>(4, padding)}},
                     name)[0];
}

Value Flatten(GraphBuilder& b, Value x) { return b.Reshape(x, {0, -1}); }

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
  const Value losses = b.Op("softmax_cross_entropy", {logits, label}, {}, "losses");
  const Value loss = b.Op("reduce_mean", {losses}, {}, "loss");
  b.Output("logits", logits);
  b.Output("loss", loss);
}

}  // namespace ridge
