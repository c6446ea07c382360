// vit_ti, vit_s, vit_b, vit_l14: vit_tiny_patch16_224, _small_, _base_ and vit_large_patch14_224 of
// timm (Dosovitskiy et al., ICLR 2021; Touvron et al., ICML 2021).
//
// Patches, a class token, learned positions, pre-norm encoder blocks, a head over the class
// token.  Names are timm's.  Starting values: normal 0.02, zero biases.
#include <fmt/format.h>

#include "ridge/models/builtin.h"
#include "ridge/models/layers.h"
#include "ridge/models/variant_rows.h"
#include "ridge/models/weights/names.h"

namespace ridge {
namespace {

constexpr double kEpsilon = 1e-6;
constexpr double kDeviation = 0.02;

struct Net {
  const char* name;
  int64_t patch, width, layers, heads;
};
constexpr Net kNets[] = {{"vit_ti", 16, 192, 12, 3},
                         {"vit_s", 16, 384, 12, 6},
                         {"vit_b", 16, 768, 12, 12},
                         {"vit_l14", 14, 1024, 24, 16}};

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
Value Patches(GraphBuilder& b, Value image, const Net& net) {
  const int64_t width = net.width;
  Value x = Conv(b, image, width, "patch_embed.proj", {.kernel = net.patch, .stride = net.patch});
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
  const Net& net = RowOf(kNets, arguments.model());
  GraphBuilder b(net.name);
  const int64_t size = arguments["image"];
  if (size % net.patch != 0) {
    return Status(
        ErrorCode::kInvalidModel,
        fmt::format("{}: image is {}; it must be a multiple of {}", net.name, size, net.patch));
  }
  Value x = Patches(b, ImageInput(b, options, {3, size, size}), net);
  for (int64_t layer = 0; layer < net.layers; ++layer)
    x = EncoderBlock(b, x, net.heads, fmt::format("blocks.{}", layer));
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
      .parameters = {{"image", "height and width", 224, 14, 4096}, {"classes", "classes", 1000}},
      .variants = {{"vit_s", "ViT-S/16 as in timm (vit_small_patch16_224)"},
                   {"vit_b", "ViT-B/16 as in timm (vit_base_patch16_224)"},
                   {"vit_l14", "ViT-L/14 as in timm (vit_large_patch14_224)"}},
      .build = BuildVit,
      .weight_names = VitWeightNames};
}

}  // namespace ridge
