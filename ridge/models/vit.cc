// vit_ti: vit_tiny_patch16_224 of timm, 5,717,416 parameters (Dosovitskiy et al., ICLR 2021;
// Touvron et al., ICML 2021).
//
// 16x16 patches, a class token, learned positions, pre-norm encoder blocks, a head over the class
// token.  Names are timm's.  Starting values: normal 0.02, zero biases.
#include <fmt/format.h>

#include "ridge/models/builtin.h"
#include "ridge/models/layers.h"
#include "ridge/models/weights/names.h"

namespace ridge {
namespace {

constexpr double kEpsilon = 1e-6;
constexpr double kDeviation = 0.02;
constexpr int64_t kPatch = 16;

Value Dense(GraphBuilder& b, Value x, int64_t out, const std::string& name) {
  return Linear(b, x, out, name, {.deviation = kDeviation});
}

Value EncoderBlock(GraphBuilder& b, Value x, int64_t heads, const std::string& name) {
  if (!b.ok()) return {};
  const int64_t width = x.dims()[2];
  const Value qkv =
      Dense(b, LayerNorm(b, x, kEpsilon, name + ".norm1"), 3 * width, name + ".attn.qkv");
  const Value attended = SelfAttention(b, qkv, heads, /*causal=*/false, name + ".attn");
  x = x + Dense(b, attended, width, name + ".attn.proj");
  const Value up =
      Dense(b, LayerNorm(b, x, kEpsilon, name + ".norm2"), 4 * width, name + ".mlp.fc1");
  return x + Dense(b, Gelu(up), width, name + ".mlp.fc2");
}

// [B,3,H,W] -> [B,1 + patches,C]: the class token, then the patches, plus positions.
Value Patches(GraphBuilder& b, Value image, int64_t width) {
  Value x = Conv(b, image, width, "patch_embed.proj", {.kernel = kPatch, .stride = kPatch});
  if (!b.ok()) return {};
  const Dims dims = x.dims();
  const int64_t patches = dims[2] * dims[3];
  x = Transpose(Reshape(x, {dims[0], width, patches}), {0, 2, 1});
  const DType dtype = x.dtype();
  const Value token = b.Parameter("cls_token", {dtype, {1, 1, width}}, Init::Normal(1e-6));
  const Value positions =
      b.Parameter("pos_embed", {dtype, {1, patches + 1, width}}, Init::Normal(kDeviation));
  x = Concat({Expand(token, {dims[0], 1, width}), x}, 1);
  return x + positions;
}

Result<Graph> BuildVit(const ModelArguments& arguments, const ModelOptions& options) {
  GraphBuilder b("vit_ti");
  const int64_t size = arguments["image"];
  if (size % kPatch != 0) {
    return Status(ErrorCode::kInvalidModel,
                  fmt::format("vit_ti: image is {}; it must be a multiple of {}", size, kPatch));
  }
  Value x = Patches(b, ImageInput(b, options, {3, size, size}), /*width=*/192);
  for (int64_t layer = 0; layer < 12; ++layer)
    x = EncoderBlock(b, x, /*heads=*/3, fmt::format("blocks.{}", layer));
  x = LayerNorm(b, x, kEpsilon, "norm");
  const Value first = Gather(x, b.Scalar(DType::kI64, 0), 1);
  ClassifierEnd(b, options, Dense(b, first, arguments["classes"], "head"));
  return b.Build();
}

}  // namespace

BuiltinModel VitTiModel() {
  return {
      .name = "vit_ti",
      .doc = "ViT-Ti/16 as in timm (vit_tiny_patch16_224)",
      .parameters = {{"image", "height and width", 224, 16, 4096}, {"classes", "classes", 1000}},
      .build = BuildVit,
      .weight_names = VitWeightNames};
}

}  // namespace ridge
