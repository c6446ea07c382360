#include "tests/partition/small_resnet.h"

#include "ridge/models/layers.h"
#include "ridge/models/model.h"

namespace ridge {

Result<Graph> SmallResnet() {
  constexpr int64_t kChannels = 8;
  const ModelOptions options{.batch = 8, .dtype = DType::kF64};
  GraphBuilder b("small_resnet");
  const ConvOptions same{.kernel = 3, .padding = 1, .bias = false};
  const ConvOptions half{.kernel = 3, .stride = 2, .padding = 1, .bias = false};
  Value x = ImageInput(b, options, {3, 8, 8});
  x = Relu(BatchNorm(b, Conv(b, x, kChannels, "stem", same), "stem.bn"));
  Value y = Relu(BatchNorm(b, Conv(b, x, kChannels, "block.1", same), "block.1.bn"));
  y = BatchNorm(b, Conv(b, y, kChannels, "block.2", same), "block.2.bn");
  x = Relu(x + y);
  y = BatchNorm(b, Conv(b, x, 2 * kChannels, "down", half), "down.bn");
  const Value shortcut = Conv(b, x, 2 * kChannels, "shortcut",
                              {.kernel = 1, .stride = 2, .padding = 0, .bias = false});
  x = Relu(y + BatchNorm(b, shortcut, "shortcut.bn"));
  ClassifierEnd(b, options, b.Linear(Mean(x, {2, 3}), 4, "fc"));
  return b.Build();
}

}  // namespace ridge
