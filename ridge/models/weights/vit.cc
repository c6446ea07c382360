// vit_ti: timm's names are ours (vit_tiny_patch16_224). Hugging Face's ViT and DeiT store query,
// key and value apart; their newer files have shorter names.
#include <array>

#include "ridge/models/weights/names.h"

namespace ridge {
namespace {

struct Pair {
  const char* ours;
  const char* theirs;
};

constexpr std::array<Pair, 5> kOuter = {{
    {"cls_token", "vit.embeddings.cls_token"},
    {"pos_embed", "vit.embeddings.position_embeddings"},
    {"patch_embed.proj.*", "vit.embeddings.patch_embeddings.projection.*"},
    {"norm.*", "vit.layernorm.*"},
    {"head.*", "classifier.*"},
}};

// How one generation of files calls what is in a layer.
struct LayerNames {
  std::string layer;
  std::array<const char*, 3> qkv;
  std::array<Pair, 5> others;
};

void AddLayerRules(const LayerNames& files, WeightNames& names) {
  for (const char* end : {".weight", ".bias"}) {
    WeightRule joined{std::string("blocks.*.attn.qkv") + end, {}};
    for (const char* part : files.qkv) joined.theirs.push_back(files.layer + part + end);
    names.rules.push_back(joined);
    for (const Pair& pair : files.others)
      names.rules.push_back(
          {std::string("blocks.*") + pair.ours + end, {files.layer + pair.theirs + end}});
  }
}

}  // namespace

WeightNames VitWeightNames() {
  WeightNames names;
  names.prefix = "vit.";
  for (const Pair& pair : kOuter) names.rules.push_back({pair.ours, {pair.theirs}});
  AddLayerRules(
      {"vit.encoder.layer.*",
       {".attention.attention.query", ".attention.attention.key", ".attention.attention.value"},
       {{{".norm1", ".layernorm_before"},
         {".attn.proj", ".attention.output.dense"},
         {".norm2", ".layernorm_after"},
         {".mlp.fc1", ".intermediate.dense"},
         {".mlp.fc2", ".output.dense"}}}},
      names);
  AddLayerRules({"vit.layers.*",
                 {".attention.q_proj", ".attention.k_proj", ".attention.v_proj"},
                 {{{".norm1", ".layernorm_before"},
                   {".attn.proj", ".attention.o_proj"},
                   {".norm2", ".layernorm_after"},
                   {".mlp.fc1", ".mlp.fc1"},
                   {".mlp.fc2", ".mlp.fc2"}}}},
                names);
  return names;
}

}  // namespace ridge
