// cnn: the MNIST CNN: conv 3x3 without padding, ReLU, max-pool 2, flatten, linear.
//
// nn.Sequential(Conv2d(1, 32, 3), ReLU(), MaxPool2d(2), Flatten(), Linear(13*13*32, 10)): the
// parameters are 0.weight, 0.bias, 4.weight, 4.bias as there.
#include "ridge/models/builtin.h"
#include "ridge/models/layers.h"
#include "ridge/models/weights/names.h"

namespace ridge {
namespace {

Result<Graph> BuildCnn(const ModelArguments& arguments, const ModelOptions& options) {
  GraphBuilder b("cnn");
  const int64_t height = arguments["image"];
  const int64_t width = arguments["width"] > 0 ? arguments["width"] : height;
  Value x = ImageInput(b, options, {arguments["channels"], height, width});
  x = Relu(Conv(b, x, arguments["filters"], "0", {.kernel = 3}));
  x = Flatten(MaxPool(x, /*kernel=*/2, /*stride=*/2, /*padding=*/0, "pool"));
  ClassifierEnd(b, options, b.Linear(x, arguments["classes"], "4"));
  return b.Build();
}

}  // namespace

BuiltinModel CnnModel() {
  return {.name = "cnn",
          .doc = "the MNIST CNN: conv 3x3x32, ReLU, max-pool 2, linear",
          .parameters = {{"filters", "filters of the convolution", 32},
                         {"image", "height and width", 28, 4, 4096},
                         {"width", "width, where it is another; 0: as image", 0, 0, 65536},
                         {"channels", "channels of the image", 1},
                         {"classes", "classes", 10}},
          .build = BuildCnn,
          .weight_names = PlainWeightNames};
}

}  // namespace ridge
