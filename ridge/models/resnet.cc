// resnet18, 34, 50, 101, 152: exactly torchvision's.
//
// He et al., "Deep Residual Learning for Image Recognition", CVPR 2016.  Stem: conv 7x7/2, batch
// norm, ReLU, max-pool 3/2.  Four stages of basic blocks or bottlenecks; the first block of stages
// 2 to 4 has stride 2, and a 1x1 convolution is on the shortcut where its shape changes.
// Convolutions have no bias and start normal with fan out; batch norm starts as the identity.
#include <fmt/format.h>

#include <array>

#include "ridge/models/builtin.h"
#include "ridge/models/encoders.h"
#include "ridge/models/layers.h"
#include "ridge/models/variant_rows.h"
#include "ridge/models/weights/names.h"

namespace ridge {
namespace {

Value ConvNorm(GraphBuilder& b, Value x, int64_t channels, ConvOptions options,
               const std::string& conv, const std::string& norm) {
  options.bias = false;
  options.kaiming_normal_fan_out = true;
  return BatchNorm(b, Conv(b, x, channels, conv, options), norm);
}

// relu(bn2(conv2(relu(bn1(conv1(x))))) + shortcut(x))
Value BasicBlock(GraphBuilder& b, Value x, int64_t channels, int64_t stride,
                 const std::string& name) {
  if (!b.ok()) return {};
  Value shortcut = x;
  Value y = ConvNorm(b, x, channels, {.kernel = 3, .stride = stride, .padding = 1}, name + ".conv1",
                     name + ".bn1");
  y = ConvNorm(b, Relu(y), channels, {.kernel = 3, .padding = 1}, name + ".conv2", name + ".bn2");
  if (stride != 1 || x.dims()[1] != channels) {
    shortcut = ConvNorm(b, x, channels, {.kernel = 1, .stride = stride}, name + ".downsample.0",
                        name + ".downsample.1");
  }
  return Relu(y + shortcut);
}

// relu(bn3(conv3(relu(bn2(conv2(relu(bn1(conv1(x)))))))) + shortcut(x)); the stride is conv2's
// ("v1.5").
Value Bottleneck(GraphBuilder& b, Value x, int64_t channels, int64_t stride,
                 const std::string& name) {
  if (!b.ok()) return {};
  Value shortcut = x;
  Value y = ConvNorm(b, x, channels, {.kernel = 1}, name + ".conv1", name + ".bn1");
  y = ConvNorm(b, Relu(y), channels, {.kernel = 3, .stride = stride, .padding = 1}, name + ".conv2",
               name + ".bn2");
  y = ConvNorm(b, Relu(y), 4 * channels, {.kernel = 1}, name + ".conv3", name + ".bn3");
  if (!b.ok()) return {};
  if (stride != 1 || x.dims()[1] != 4 * channels) {
    shortcut = ConvNorm(b, x, 4 * channels, {.kernel = 1, .stride = stride}, name + ".downsample.0",
                        name + ".downsample.1");
  }
  return Relu(y + shortcut);
}

struct ResNet {
  const char* name;
  std::array<int64_t, 4> blocks;  // of each stage
  Value (*block)(GraphBuilder&, Value, int64_t, int64_t, const std::string&);
};

constexpr ResNet kNets[] = {
    {"resnet18", {2, 2, 2, 2}, BasicBlock},   {"resnet34", {3, 4, 6, 3}, BasicBlock},
    {"resnet50", {3, 4, 6, 3}, Bottleneck},   {"resnet101", {3, 4, 23, 3}, Bottleneck},
    {"resnet152", {3, 8, 36, 3}, Bottleneck},
};

Result<Graph> BuildResNet(const ModelArguments& arguments, const ModelOptions& options) {
  GraphBuilder b(arguments.model());
  const int64_t height = arguments["image"];
  const int64_t width = arguments["width"] > 0 ? arguments["width"] : height;
  const Value image = ImageInput(b, options, {arguments["channels"], height, width});
  const Value features = ResNetFeatures(b, image, arguments.model());
  ClassifierEnd(b, options, b.Linear(features, arguments["classes"], "fc"));
  return b.Build();
}

std::vector<ModelParameter> Parameters() {
  return {{"image", "height and width", 224, 8, 4096},
          {"width", "width, where it is another; 0: as image", 0, 0, 65536},
          {"channels", "channels of the image", 3},
          {"classes", "classes", 1000}};
}

}  // namespace

Value ResNetFeatures(GraphBuilder& b, Value image, const std::string& name) {
  const ResNet& net = RowOf(kNets, name);
  Value x = ConvNorm(b, image, 64, {.kernel = 7, .stride = 2, .padding = 3}, "conv1", "bn1");
  x = MaxPool(Relu(x), /*kernel=*/3, /*stride=*/2, /*padding=*/1, "maxpool");
  for (int64_t stage = 0; stage < 4; ++stage) {
    for (int64_t block = 0; block < net.blocks[static_cast<size_t>(stage)]; ++block) {
      const int64_t stride = stage > 0 && block == 0 ? 2 : 1;
      x = net.block(b, x, int64_t{64} << stage, stride,
                    fmt::format("layer{}.{}", stage + 1, block));
    }
  }
  return Op("reduce_mean", {x}, {{"axes", {2, 3}}}, "avgpool");
}

BuiltinModel ResNet18Model() {
  return {.name = "resnet18",
          .doc = "ResNet-18 as in torchvision",
          .parameters = Parameters(),
          .variants = {{"resnet34", "ResNet-34 as in torchvision"}},
          .build = BuildResNet,
          .weight_names = TorchvisionWeightNames};
}

BuiltinModel ResNet50Model() {
  return {.name = "resnet50",
          .doc = "ResNet-50 (v1.5) as in torchvision",
          .parameters = Parameters(),
          .variants = {{"resnet101", "ResNet-101 as in torchvision"},
                       {"resnet152", "ResNet-152 as in torchvision"}},
          .build = BuildResNet,
          .weight_names = TorchvisionWeightNames};
}

}  // namespace ridge
