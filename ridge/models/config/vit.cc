// vit: ViT and DeiT without its distillation token.
#include "ridge/models/config/family.h"

namespace ridge {

ConfigFamily VitConfigFamily() {
  using enum KeyUse;
  return {.model_type = "vit",
          .model = "vit_ti",
          .rows = {{"image_size", kInteger, "image", "224"},
                   {"patch_size", kInteger, "patch", "16"},
                   {"hidden_size", kInteger, "hidden", "768"},
                   {"num_hidden_layers", kInteger, "layers", "12"},
                   {"num_attention_heads", kInteger, "heads", "12"},
                   {"intermediate_size", kInteger, "inner", "3072"},
                   {"layer_norm_eps", kReal, "epsilon", "1e-12"},
                   {"hidden_act", kFixed, "\"gelu\"", "\"gelu\""},
                   {"num_channels", kFixed, "3", "3"},
                   {"qkv_bias", kFixed, "true", "true"},
                   {"hidden_dropout_prob", kDropout, "", "0"},
                   {"attention_probs_dropout_prob", kDropout, "", "0"}},
          .ignored = {"encoder_stride", "pooler_*"},
          .head = {{"head.*", "classifier.*"}},
          .left_out = {"*pooler.*"},
          .classifier = "ForImageClassification"};
}

}  // namespace ridge
