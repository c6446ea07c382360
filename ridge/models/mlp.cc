// mlp: Linear, ReLU, ..., Linear on a flat image; 784-512-512-10 by default.
//
// nn.Sequential(Linear(784, 512), ReLU(), Linear(512, 512), ReLU(), Linear(512, 10)): the
// parameters are 0.weight, 0.bias, 2.weight, ... as there.
#include <fmt/format.h>

#include "ridge/models/builtin.h"
#include "ridge/models/layers.h"
#include "ridge/models/weights/names.h"

namespace ridge {
namespace {

Result<Graph> BuildMlp(const ModelArguments& arguments, const ModelOptions& options) {
  GraphBuilder b("mlp");
  Value x = ImageInput(b, options, {arguments["inputs"]});
  const int64_t layers = arguments["layers"];
  for (int64_t i = 0; i < layers; ++i)
    x = Relu(b.Linear(x, arguments["hidden"], fmt::to_string(2 * i)));
  ClassifierEnd(b, options, b.Linear(x, arguments["classes"], fmt::to_string(2 * layers)));
  return b.Build();
}

}  // namespace

BuiltinModel MlpModel() {
  return {.name = "mlp",
          .doc = "fully connected with ReLU, on flat images: 784-512-512-10",
          .parameters = {{"hidden", "width of the hidden layers", 512},
                         {"layers", "hidden layers", 2, 0, 1000},
                         {"inputs", "values of an image", 784},
                         {"classes", "classes", 10}},
          .build = BuildMlp,
          .weight_names = PlainWeightNames};
}

}  // namespace ridge
