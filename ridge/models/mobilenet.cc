// mobilenet_v3_small and _large: exactly torchvision's, without dropout (Howard et al., ICCV 2019).
//
// Inverted residuals: 1x1 expansion, depthwise convolution, squeeze and excitation, 1x1 projection;
// ReLU in the blocks of few channels, hard swish in the others.
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "ridge/models/builtin.h"
#include "ridge/models/layers.h"
#include "ridge/models/variant_rows.h"
#include "ridge/models/weights/names.h"

namespace ridge {
namespace {

struct Row {
  int64_t kernel, expanded, channels;
  bool squeeze, hard_swish;
  int64_t stride;
};
constexpr Row kSmall[] = {
    {3, 16, 16, true, false, 2}, {3, 72, 24, false, false, 2}, {3, 88, 24, false, false, 1},
    {5, 96, 40, true, true, 2},  {5, 240, 40, true, true, 1},  {5, 240, 40, true, true, 1},
    {5, 120, 48, true, true, 1}, {5, 144, 48, true, true, 1},  {5, 288, 96, true, true, 2},
    {5, 576, 96, true, true, 1}, {5, 576, 96, true, true, 1}};
constexpr Row kLarge[] = {
    {3, 16, 16, false, false, 1}, {3, 64, 24, false, false, 2}, {3, 72, 24, false, false, 1},
    {5, 72, 40, true, false, 2},  {5, 120, 40, true, false, 1}, {5, 120, 40, true, false, 1},
    {3, 240, 80, false, true, 2}, {3, 200, 80, false, true, 1}, {3, 184, 80, false, true, 1},
    {3, 184, 80, false, true, 1}, {3, 480, 112, true, true, 1}, {3, 672, 112, true, true, 1},
    {5, 672, 160, true, true, 2}, {5, 960, 160, true, true, 1}, {5, 960, 160, true, true, 1}};

struct Net {
  const char* name;
  std::span<const Row> rows;
  int64_t last, hidden;  // channels of the last convolution, width of the classifier
};
constexpr Net kNets[] = {{"mobilenet_v3_small", kSmall, 576, 1024},
                         {"mobilenet_v3_large", kLarge, 960, 1280}};

// clip(x / 6 + 1/2, 0, 1)
Value HardSigmoid(Value x) { return Op("hard_sigmoid", {x}, {{"alpha", 1.0 / 6}, {"beta", 0.5}}); }

Value Activate(Value x, bool hard_swish) { return hard_swish ? Op("hard_swish", {x}) : Relu(x); }

Value ConvNorm(GraphBuilder& b, Value x, int64_t channels, ConvOptions options,
               const std::string& name) {
  options.bias = false;
  options.kaiming_normal_fan_out = true;
  options.padding = options.kernel / 2;
  return BatchNorm(b, Conv(b, x, channels, name + ".0", options), name + ".1",
                   {.epsilon = 1e-3, .momentum = 0.01});
}

// To the next multiple of 8, and not below nine tenths.
int64_t Divisible(int64_t channels) {
  const int64_t rounded = std::max<int64_t>(8, (channels + 4) / 8 * 8);
  return 10 * rounded < 9 * channels ? rounded + 8 : rounded;
}

Value SqueezeExcite(GraphBuilder& b, Value x, const std::string& name) {
  if (!b.ok()) return {};
  const int64_t channels = x.dims()[1];
  const ConvOptions conv = {.kernel = 1, .kaiming_normal_fan_out = true};
  Value s = Mean(x, {2, 3}, /*keep_dims=*/true);
  s = Relu(Conv(b, s, Divisible(channels / 4), name + ".fc1", conv));
  return HardSigmoid(Conv(b, s, channels, name + ".fc2", conv)) * x;
}

Value Residual(GraphBuilder& b, Value x, const Row& row, const std::string& name) {
  if (!b.ok()) return {};
  Value y = x;
  int64_t part = 0;
  auto next = [&] { return fmt::format("{}.block.{}", name, part++); };
  if (row.expanded != x.dims()[1])
    y = Activate(ConvNorm(b, y, row.expanded, {.kernel = 1}, next()), row.hard_swish);
  const ConvOptions depthwise = {
      .kernel = row.kernel, .stride = row.stride, .groups = row.expanded};
  y = Activate(ConvNorm(b, y, row.expanded, depthwise, next()), row.hard_swish);
  if (row.squeeze) y = SqueezeExcite(b, y, next());
  y = ConvNorm(b, y, row.channels, {.kernel = 1}, next());
  return b.ok() && x.type() == y.type() ? x + y : y;
}

Result<Graph> BuildMobileNet(const ModelArguments& arguments, const ModelOptions& options) {
  const Net& net = RowOf(kNets, arguments.model());
  GraphBuilder b(net.name);
  const int64_t size = arguments["image"];
  Value x = ImageInput(b, options, {3, size, size});
  x = Activate(ConvNorm(b, x, 16, {.kernel = 3, .stride = 2}, "features.0"), true);
  int64_t index = 1;
  for (const Row& row : net.rows) x = Residual(b, x, row, fmt::format("features.{}", index++));
  x = Activate(ConvNorm(b, x, net.last, {.kernel = 1}, fmt::format("features.{}", index)), true);
  x = Op("reduce_mean", {x}, {{"axes", {2, 3}}}, "avgpool");
  x = Activate(Linear(b, x, net.hidden, "classifier.0", {.deviation = 0.01}), true);
  ClassifierEnd(b, options,
                Linear(b, x, arguments["classes"], "classifier.3", {.deviation = 0.01}));
  return b.Build();
}

}  // namespace

BuiltinModel MobileNetV3SmallModel() {
  return {
      .name = "mobilenet_v3_small",
      .doc = "MobileNetV3-Small as in torchvision, without dropout",
      .parameters = {{"image", "height and width", 224, 32, 4096}, {"classes", "classes", 1000}},
      .variants = {{"mobilenet_v3_large", "MobileNetV3-Large as in torchvision, without dropout"}},
      .build = BuildMobileNet,
      .weight_names = TorchvisionWeightNames};
}

}  // namespace ridge
