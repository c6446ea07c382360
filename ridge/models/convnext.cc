// convnext_tiny, _small, _base: exactly torchvision's, without stochastic depth (Liu et al., CVPR
// 2022).
//
// A block: depthwise 7x7, layer norm over channels, MLP of four times the width with GELU, a factor
// a channel (layer scale), all added to its input.  Layer norms run over channels that lie last.
#include <fmt/format.h>

#include <array>

#include "ridge/models/builtin.h"
#include "ridge/models/layers.h"
#include "ridge/models/variant_rows.h"
#include "ridge/models/weights/names.h"

namespace ridge {
namespace {

constexpr double kEpsilon = 1e-6;
constexpr double kDeviation = 0.02;
constexpr double kLayerScale = 1e-6;

struct Net {
  const char* name;
  std::array<int64_t, 4> layers, channels;
};
constexpr Net kNets[] = {{"convnext_tiny", {3, 3, 9, 3}, {96, 192, 384, 768}},
                         {"convnext_small", {3, 3, 27, 3}, {96, 192, 384, 768}},
                         {"convnext_base", {3, 3, 27, 3}, {128, 256, 512, 1024}}};

Value ChannelsLast(Value x) { return Transpose(x, {0, 2, 3, 1}); }
Value ChannelsFirst(Value x) { return Transpose(x, {0, 3, 1, 2}); }

Value Normalize(GraphBuilder& b, Value x, const std::string& name) {
  return ChannelsFirst(LayerNorm(b, ChannelsLast(x), kEpsilon, name));
}

Value Convolve(GraphBuilder& b, Value x, int64_t channels, ConvOptions options,
               const std::string& name) {
  options.deviation = kDeviation;
  return Conv(b, x, channels, name, options);
}

Value Block(GraphBuilder& b, Value x, const std::string& name) {
  if (!b.ok()) return {};
  const int64_t channels = x.dims()[1];
  Value y =
      Convolve(b, x, channels, {.kernel = 7, .padding = 3, .groups = channels}, name + ".block.0");
  y = LayerNorm(b, ChannelsLast(y), kEpsilon, name + ".block.2");
  y = Gelu(Linear(b, y, 4 * channels, name + ".block.3", {.deviation = kDeviation}));
  y = Linear(b, y, channels, name + ".block.5", {.deviation = kDeviation});
  const Value scale = b.Parameter(name + ".layer_scale", {x.dtype(), {channels, 1, 1}},
                                  Init::Constant(kLayerScale));
  return x + scale * ChannelsFirst(y);
}

Result<Graph> BuildConvNext(const ModelArguments& arguments, const ModelOptions& options) {
  const Net& net = RowOf(kNets, arguments.model());
  GraphBuilder b(net.name);
  const int64_t size = arguments["image"];
  Value x = ImageInput(b, options, {3, size, size});
  for (size_t stage = 0; stage < 4; ++stage) {
    const std::string begin = fmt::format("features.{}", 2 * stage);
    if (stage == 0) {
      x = Convolve(b, x, net.channels[0], {.kernel = 4, .stride = 4}, begin + ".0");
      x = Normalize(b, x, begin + ".1");
    } else {
      x = Normalize(b, x, begin + ".0");
      x = Convolve(b, x, net.channels[stage], {.kernel = 2, .stride = 2}, begin + ".1");
    }
    for (int64_t layer = 0; layer < net.layers[stage]; ++layer)
      x = Block(b, x, fmt::format("features.{}.{}", 2 * stage + 1, layer));
  }
  x = Op("reduce_mean", {x}, {{"axes", {2, 3}}}, "avgpool");
  x = LayerNorm(b, x, kEpsilon, "classifier.0");
  ClassifierEnd(b, options,
                Linear(b, x, arguments["classes"], "classifier.2", {.deviation = kDeviation}));
  return b.Build();
}

}  // namespace

BuiltinModel ConvNextTinyModel() {
  return {
      .name = "convnext_tiny",
      .doc = "ConvNeXt-T as in torchvision, without stochastic depth",
      .parameters = {{"image", "height and width", 224, 32, 4096}, {"classes", "classes", 1000}},
      .variants = {{"convnext_small", "ConvNeXt-S as in torchvision, without stochastic depth"},
                   {"convnext_base", "ConvNeXt-B as in torchvision, without stochastic depth"}},
      .build = BuildConvNext,
      .weight_names = TorchvisionWeightNames};
}

}  // namespace ridge
