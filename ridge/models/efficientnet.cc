// efficientnet_v2_s, _m, _l: exactly torchvision's, without stochastic depth and dropout (Tan and
// Le, ICML 2021).
//
// Stem conv 3x3/2, stages of fused MBConv (3x3 expansion) and MBConv (1x1 expansion, depthwise 3x3,
// squeeze and excitation), a 1x1 convolution to 1280 channels; SiLU throughout.
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "ridge/models/builtin.h"
#include "ridge/models/layers.h"
#include "ridge/models/variant_rows.h"
#include "ridge/models/weights/names.h"

namespace ridge {
namespace {

struct Stage {
  bool fused;
  int64_t expand, stride, channels, layers;
};
constexpr Stage kSmall[] = {{true, 1, 1, 24, 2},   {true, 4, 2, 48, 4},   {true, 4, 2, 64, 4},
                            {false, 4, 2, 128, 6}, {false, 6, 1, 160, 9}, {false, 6, 2, 256, 15}};
constexpr Stage kMedium[] = {{true, 1, 1, 24, 3},   {true, 4, 2, 48, 5},    {true, 4, 2, 80, 5},
                             {false, 4, 2, 160, 7}, {false, 6, 1, 176, 14}, {false, 6, 2, 304, 18},
                             {false, 6, 1, 512, 5}};
constexpr Stage kLarge[] = {{true, 1, 1, 32, 4},    {true, 4, 2, 64, 7},    {true, 4, 2, 96, 7},
                            {false, 4, 2, 192, 10}, {false, 6, 1, 224, 19}, {false, 6, 2, 384, 25},
                            {false, 6, 1, 640, 7}};

struct Net {
  const char* name;
  std::span<const Stage> stages;
};
constexpr Net kNets[] = {
    {"efficientnet_v2_s", kSmall}, {"efficientnet_v2_m", kMedium}, {"efficientnet_v2_l", kLarge}};

// NAME.0 a convolution without bias, NAME.1 its batch norm.
Value ConvNorm(GraphBuilder& b, Value x, int64_t channels, ConvOptions options,
               const std::string& name) {
  options.bias = false;
  options.kaiming_normal_fan_out = true;
  options.padding = options.kernel / 2;
  return BatchNorm(b, Conv(b, x, channels, name + ".0", options), name + ".1", {.epsilon = 1e-3});
}

Value ConvNormAct(GraphBuilder& b, Value x, int64_t channels, const ConvOptions& options,
                  const std::string& name) {
  return Silu(ConvNorm(b, x, channels, options, name));
}

// x * sigmoid(fc2(silu(fc1(mean(x)))))
Value SqueezeExcite(GraphBuilder& b, Value x, int64_t squeezed, const std::string& name) {
  if (!b.ok()) return {};
  const int64_t channels = x.dims()[1];
  const ConvOptions conv = {.kernel = 1, .kaiming_normal_fan_out = true};
  Value s = Mean(x, {2, 3}, /*keep_dims=*/true);
  s = Silu(Conv(b, s, squeezed, name + ".fc1", conv));
  return Sigmoid(Conv(b, s, channels, name + ".fc2", conv)) * x;
}

Value FusedBlock(GraphBuilder& b, Value x, const Stage& stage, int64_t stride,
                 const std::string& name) {
  if (!b.ok()) return {};
  const int64_t inputs = x.dims()[1];
  if (stage.expand == 1)
    return ConvNormAct(b, x, stage.channels, {.kernel = 3, .stride = stride}, name + ".0");
  x = ConvNormAct(b, x, inputs * stage.expand, {.kernel = 3, .stride = stride}, name + ".0");
  return ConvNorm(b, x, stage.channels, {.kernel = 1}, name + ".1");
}

Value DepthwiseBlock(GraphBuilder& b, Value x, const Stage& stage, int64_t stride,
                     const std::string& name) {
  if (!b.ok()) return {};
  const int64_t inputs = x.dims()[1], wide = inputs * stage.expand;
  x = ConvNormAct(b, x, wide, {.kernel = 1}, name + ".0");
  x = ConvNormAct(b, x, wide, {.kernel = 3, .stride = stride, .groups = wide}, name + ".1");
  x = SqueezeExcite(b, x, std::max<int64_t>(1, inputs / 4), name + ".2");
  return ConvNorm(b, x, stage.channels, {.kernel = 1}, name + ".3");
}

Value Block(GraphBuilder& b, Value x, const Stage& stage, int64_t stride, const std::string& name) {
  const Value y = stage.fused ? FusedBlock(b, x, stage, stride, name + ".block")
                              : DepthwiseBlock(b, x, stage, stride, name + ".block");
  return b.ok() && x.type() == y.type() ? x + y : y;
}

Result<Graph> BuildEfficientNet(const ModelArguments& arguments, const ModelOptions& options) {
  const Net& net = RowOf(kNets, arguments.model());
  GraphBuilder b(net.name);
  const int64_t size = arguments["image"];
  Value x = ImageInput(b, options, {3, size, size});
  x = ConvNormAct(b, x, net.stages[0].channels, {.kernel = 3, .stride = 2}, "features.0");
  int64_t index = 1;
  for (const Stage& stage : net.stages) {
    for (int64_t layer = 0; layer < stage.layers; ++layer)
      x = Block(b, x, stage, layer == 0 ? stage.stride : 1,
                fmt::format("features.{}.{}", index, layer));
    ++index;
  }
  x = ConvNormAct(b, x, 1280, {.kernel = 1}, fmt::format("features.{}", index));
  x = Op("reduce_mean", {x}, {{"axes", {2, 3}}}, "avgpool");
  ClassifierEnd(b, options, b.Linear(x, arguments["classes"], "classifier.1"));
  return b.Build();
}

}  // namespace

BuiltinModel EfficientNetV2SModel() {
  return {
      .name = "efficientnet_v2_s",
      .doc = "EfficientNetV2-S as in torchvision, without dropout and stochastic depth",
      .parameters = {{"image", "height and width", 384, 32, 4096}, {"classes", "classes", 1000}},
      .variants = {{"efficientnet_v2_m",
                    "EfficientNetV2-M as in torchvision, without dropout and stochastic depth",
                    {{"image", 480}}},
                   {"efficientnet_v2_l",
                    "EfficientNetV2-L as in torchvision, without dropout and stochastic depth",
                    {{"image", 480}}}},
      .build = BuildEfficientNet,
      .weight_names = TorchvisionWeightNames};
}

}  // namespace ridge
