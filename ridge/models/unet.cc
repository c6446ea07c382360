// unet: Ronneberger et al., "U-Net: Convolutional Networks for Biomedical Image Segmentation",
// MICCAI 2015, with padded convolutions and without batch norm.
//
// Five levels of two 3x3 convolutions with ReLU; max-pool down, transposed convolution 2x2/2 up,
// the skip is concatenated behind.  Parameters: enc.L.{0,2}, up.L, dec.L.{0,2}, head.
#include <fmt/format.h>

#include "ridge/models/builtin.h"
#include "ridge/models/layers.h"
#include "ridge/models/weights/names.h"

namespace ridge {
namespace {

constexpr int64_t kLevels = 5;

Value Block(GraphBuilder& b, Value x, int64_t channels, const std::string& name) {
  x = Relu(Conv(b, x, channels, name + ".0", {.kernel = 3, .padding = 1}));
  return Relu(Conv(b, x, channels, name + ".2", {.kernel = 3, .padding = 1}));
}

// Output `logits` [B,classes,H,W], input `label` i64[B,H,W], the mean loss over the pixels that
// count.
void SegmentationEnd(GraphBuilder& b, const ModelOptions& options, Value logits) {
  if (!b.ok()) return;
  const Dims dims = logits.dims();
  const Value label =
      b.Input("label", {DType::kI64, {options.batch, dims[2], dims[3]}}, {"batch", "", ""});
  const Value last = Transpose(logits, {0, 2, 3, 1});  // classes last
  b.Output("logits", logits);
  b.Output("loss", CrossEntropyMean(b, last, label));
}

Result<Graph> BuildUnet(const ModelArguments& arguments, const ModelOptions& options) {
  GraphBuilder b("unet");
  const int64_t size = arguments["image"], base = arguments["base"];
  if (size % (int64_t{1} << (kLevels - 1)) != 0) {
    return Status(ErrorCode::kInvalidModel,
                  fmt::format("unet: image is {}; it must be a multiple of 16", size));
  }
  Value x = ImageInput(b, options, {arguments["channels"], size, size});
  std::vector<Value> skips;
  for (int64_t level = 0; level < kLevels; ++level) {
    x = Block(b, x, base << level, fmt::format("enc.{}", level));
    if (level + 1 == kLevels) break;
    skips.push_back(x);
    x = MaxPool(x, /*kernel=*/2, /*stride=*/2, /*padding=*/0, fmt::format("down.{}", level));
  }
  for (int64_t level = kLevels - 1; level-- > 0;) {
    const Value up = UpConv(b, x, base << level, 2, fmt::format("up.{}", level));
    x = Concat({up, skips[static_cast<size_t>(level)]}, 1);
    x = Block(b, x, base << level, fmt::format("dec.{}", level));
  }
  SegmentationEnd(b, options, Conv(b, x, arguments["classes"], "head", {.kernel = 1}));
  return b.Build();
}

}  // namespace

BuiltinModel UnetModel() {
  return {.name = "unet",
          .doc = "U-Net of five levels for segmentation",
          .parameters = {{"image", "height and width", 128, 16, 4096},
                         {"channels", "channels of the image", 3},
                         {"base", "channels of the first level", 32, 1, 1024},
                         {"classes", "classes of a pixel", 2}},
          .build = BuildUnet,
          .weight_names = PlainWeightNames};
}

}  // namespace ridge
