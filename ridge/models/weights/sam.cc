// sam_vit_b and its like: names of the public checkpoints are ours; timm's (samvit_base_patch16)
// have no prefix and another MLP; Hugging Face's files call the encoder vision_encoder.
#include <array>

#include "ridge/models/weights/names.h"

namespace ridge {
namespace {

struct Pair {
  const char* ours;
  const char* theirs;
};

constexpr std::array<Pair, 14> kNames = {{
    {".blocks.*.mlp.lin1.weight", ".blocks.*.mlp.fc1.weight"},
    {".blocks.*.mlp.lin1.bias", ".blocks.*.mlp.fc1.bias"},
    {".blocks.*.mlp.lin2.weight", ".blocks.*.mlp.fc2.weight"},
    {".blocks.*.mlp.lin2.bias", ".blocks.*.mlp.fc2.bias"},
    {".patch_embed.proj.*", "vision_encoder.patch_embed.projection.*"},
    {".blocks.*.norm1.weight", "vision_encoder.layers.*.layer_norm1.weight"},
    {".blocks.*.norm1.bias", "vision_encoder.layers.*.layer_norm1.bias"},
    {".blocks.*.norm2.weight", "vision_encoder.layers.*.layer_norm2.weight"},
    {".blocks.*.norm2.bias", "vision_encoder.layers.*.layer_norm2.bias"},
    {".blocks.*", "vision_encoder.layers.*"},
    {".neck.0.*", "vision_encoder.neck.conv1.*"},
    {".neck.1.*", "vision_encoder.neck.layer_norm1.*"},
    {".neck.2.*", "vision_encoder.neck.conv2.*"},
    {".neck.3.*", "vision_encoder.neck.layer_norm2.*"},
}};

}  // namespace

WeightNames SamWeightNames() {
  const std::string prefix = "image_encoder";
  WeightNames names = {
      .prefix = prefix + ".",
      .unused = {"prompt_encoder.*", "mask_decoder.*", "shared_image_embedding.*", "pixel_*"}};
  for (const Pair& pair : kNames) {
    const std::string theirs = pair.theirs[0] == '.' ? prefix + pair.theirs : pair.theirs;
    names.rules.push_back({prefix + pair.ours, {theirs}});
  }
  names.rules.push_back({prefix + ".pos_embed", {"vision_encoder.pos_embed"}});
  return names;
}

}  // namespace ridge
