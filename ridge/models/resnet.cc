// resnet18: exactly torchvision.models.resnet18, 11,689,512 parameters.
//
// He et al., "Deep Residual Learning for Image Recognition", CVPR 2016.  Stem: conv 7x7/2, batch
// norm, ReLU, max-pool 3/2.  Four stages of two basic blocks; the first block of stages 2 to 4 has
// stride 2 and a 1x1 convolution on the shortcut.  Convolutions have no bias and start normal with
// fan out; batch norm starts as the identity.
#include <fmt/format.h>

#include "ridge/models/builtin.h"
#include "ridge/models/layers.h"

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
  y = ConvNorm(b, b.Relu(y), channels, {.kernel = 3, .padding = 1}, name + ".conv2", name + ".bn2");
  if (stride != 1 || b.dims(x)[1] != channels) {
    shortcut = ConvNorm(b, x, channels, {.kernel = 1, .stride = stride}, name + ".downsample.0",
                        name + ".downsample.1");
  }
  return b.Relu(b.Add(y, shortcut));
}

Result<Graph> BuildResNet18(const ModelArguments& arguments, const ModelOptions& options) {
  GraphBuilder b("resnet18");
  const int64_t size = arguments["image"];
  Value x = ImageInput(b, options, {arguments["channels"], size, size});
  x = ConvNorm(b, x, 64, {.kernel = 7, .stride = 2, .padding = 3}, "conv1", "bn1");
  x = MaxPool(b, b.Relu(x), /*kernel=*/3, /*stride=*/2, /*padding=*/1, "maxpool");
  for (int64_t stage = 0; stage < 4; ++stage) {
    for (int64_t block = 0; block < 2; ++block) {
      const int64_t stride = stage > 0 && block == 0 ? 2 : 1;
      x = BasicBlock(b, x, int64_t{64} << stage, stride,
                     fmt::format("layer{}.{}", stage + 1, block));
    }
  }
  x = b.Op("reduce_mean", {x}, {{"axes", std::vector<int64_t>{2, 3}}}, "avgpool");
  ClassifierEnd(b, options, b.Linear(x, arguments["classes"], "fc"));
  return b.Build();
}

}  // namespace

BuiltinModel ResNet18Model() {
  return {.name = "resnet18",
          .doc = "ResNet-18 as in torchvision, 11.7 million parameters",
          .parameters = {{"image", "height and width", 224, 8, 4096},
                         {"channels", "channels of the image", 3},
                         {"classes", "classes", 1000}},
          .build = BuildResNet18};
}

}  // namespace ridge
