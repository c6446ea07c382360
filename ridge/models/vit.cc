// vit_ti, vit_s, vit_b, vit_l14: vit_tiny_patch16_224, _small_, _base_ and vit_large_patch14_224 of
// timm (Dosovitskiy et al., ICLR 2021; Touvron et al., ICML 2021).
//
// Patches, a class token, learned positions, pre-norm encoder blocks, a head over the class
// token.  Names are timm's.  Starting values: normal 0.02, zero biases.
#include <fmt/format.h>

#include "ridge/models/builtin.h"
#include "ridge/models/layers.h"
#include "ridge/models/weights/names.h"

namespace ridge {
namespace {

constexpr double kDeviation = 0.02;

// What the blocks share.
struct Net {
  int64_t heads, inner;
  double epsilon;
};

Value Dense(GraphBuilder& b, Value x, int64_t out, const std::string& name) {
  return Linear(b, x, out, name, {.deviation = kDeviation});
}

Value EncoderBlock(GraphBuilder& b, Value x, const Net& net, const std::string& name) {
  if (!b.ok()) return {};
  const int64_t width = x.dims()[2];
  const Value qkv =
      Dense(b, LayerNorm(b, x, net.epsilon, name + ".norm1"), 3 * width, name + ".attn.qkv");
  const Value attended = SelfAttention(b, qkv, net.heads, /*causal=*/false, name + ".attn");
  x = x + Dense(b, attended, width, name + ".attn.proj");
  const Value up =
      Dense(b, LayerNorm(b, x, net.epsilon, name + ".norm2"), net.inner, name + ".mlp.fc1");
  return x + Dense(b, Gelu(up), width, name + ".mlp.fc2");
}

// [B,3,H,W] -> [B,1 + patches,C]: the class token, then the patches, plus positions.
Value Patches(GraphBuilder& b, Value image, int64_t width, int64_t patch) {
  Value x = Conv(b, image, width, "patch_embed.proj", {.kernel = patch, .stride = patch});
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

Status CheckSizes(const ModelArguments& arguments) {
  for (const auto& [of, by] : {std::pair{"image", "patch"}, {"hidden", "heads"}}) {
    if (arguments[of] % arguments[by] == 0) continue;
    return Status(ErrorCode::kInvalidModel,
                  fmt::format("{}: {} is {}; it must be a multiple of {}, {}", arguments.model(),
                              of, arguments[of], by, arguments[by]));
  }
  return Status();
}

Result<Graph> BuildVit(const ModelArguments& arguments, const ModelOptions& options) {
  RIDGE_RETURN_IF_ERROR(CheckSizes(arguments));
  GraphBuilder b(arguments.model());
  const int64_t size = arguments["image"], width = arguments["hidden"];
  const int64_t inner = arguments["inner"] == 0 ? 4 * width : arguments["inner"];
  const Net net = {arguments["heads"], inner, arguments.Real("epsilon")};
  Value x = Patches(b, ImageInput(b, options, {3, size, size}), width, arguments["patch"]);
  for (int64_t layer = 0; layer < arguments["layers"]; ++layer)
    x = EncoderBlock(b, x, net, fmt::format("blocks.{}", layer));
  x = LayerNorm(b, x, net.epsilon, "norm");
  const Value first = Gather(x, b.Scalar(DType::kI64, 0), 1);
  ClassifierEnd(b, options, Dense(b, first, arguments["classes"], "head"));
  return b.Build();
}

using Defaults = std::vector<std::pair<std::string, int64_t>>;

}  // namespace

BuiltinModel VitTiModel() {
  return {.name = "vit_ti",
          .doc = "ViT-Ti/16 as in timm (vit_tiny_patch16_224)",
          .parameters = {{"image", "height and width", 224, 1, 4096},
                         {"classes", "classes", 1000},
                         {"patch", "height and width of a patch", 16, 1, 4096},
                         {"hidden", "width", 192, 1, 65536},
                         {"layers", "blocks", 12, 1, 1024},
                         {"heads", "attention heads", 3, 1, 1024},
                         {"inner", "width of the MLP; 0: 4 x hidden", 0, 0},
                         {.name = "epsilon",
                          .doc = "that layer norms add to the variance",
                          .real = RealRange{1e-6, 0, 1}}},
          .variants = {{"vit_s", "ViT-S/16 as in timm (vit_small_patch16_224)",
                        Defaults{{"hidden", 384}, {"heads", 6}}},
                       {"vit_b", "ViT-B/16 as in timm (vit_base_patch16_224)",
                        Defaults{{"hidden", 768}, {"heads", 12}}},
                       {"vit_l14", "ViT-L/14 as in timm (vit_large_patch14_224)",
                        Defaults{{"patch", 14}, {"hidden", 1024}, {"layers", 24}, {"heads", 16}}}},
          .build = BuildVit,
          .weight_names = VitWeightNames};
}

}  // namespace ridge
